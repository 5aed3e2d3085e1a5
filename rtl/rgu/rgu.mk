# What `make synth` counts besides the modes: the unit, and the seed path both share.
SYNTHS += rgu_top rgu_seed
