"""Pure decisions on frozen records: no IO, no clock, no randomness."""
