# What `make synth` counts of the near-memory unit: an element, and one lane, hybrid beside binary.
SYNTHS += pnm_pe
SYNTH_TABLES += synth-pnm-lanes
.PHONY: synth-pnm-lanes
synth-pnm-lanes:
	@tools/area counts
