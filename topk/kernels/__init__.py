"""What the compiled functions of several matchers share: heaps, bits, threads."""
