"""From traces to answers: Spark jobs, statistics, the report, the ε advisor and the claims ledger.

analysis.aggregate.analyze(out)      traces → results (Spark), returned as small pandas frames
analysis.summary.load(out)           the results of an earlier analysis
analysis.summary.table(summary)      the table people read first
analysis.advisor.advise(summary)     which ε to use, and why
analysis.report.write_report(out)    one self-contained page
analysis.claims.write_claims(…)      what the documents claim, and what we measured
analysis.metrics.CATALOGUE           every metric with its definition, formula and trace columns
"""
