"""The page, the table and the sentences that answer an experiment's question.

summary         the small frames that an analysis writes, and the names of its points
effects         what each swept factor changes, paired by seed; factors: what is swept; words: effects in sentences
answer          the answer a page opens with; facts: sizes, when and where
study           where approximate covering pays; in words and tables, in pictures, in Markdown: study_words, study_text
table, numbers  the table that people read first; how numbers are written
page            the whole page; page_data, page_tables, overlay_data, replay, load, plots: its parts; assets: its files
shown_settings  which settings of a large sweep are shown; told: what the simulator adds to its traces
rates           what a search for the highest rate says
claims          verdicts on what documents claim; claims_page, claims_markdown: as a page, as tables
"""
