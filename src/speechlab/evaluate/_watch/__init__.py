"""Many runs of one study: the series, tested after each run, and the first run beside the newest."""
