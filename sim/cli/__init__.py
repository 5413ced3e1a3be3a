"""The `coverlay` command: main (arguments), verbs (what each does), lists (`coverlay list`), compiling (a notice)."""
