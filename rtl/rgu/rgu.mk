# What `make synth` counts: the unit, and the two parts a reader asks about first.
SYNTHS += rgu_top rgu_tile rgu_seed
