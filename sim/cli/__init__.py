"""The `coverlay` command: main (arguments), verbs and looking (what each does), lists, terminal, compiling."""
