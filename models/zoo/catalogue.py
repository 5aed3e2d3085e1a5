"""The variants of the table: forms.Form's settings by name. Layers 2 and 3 of four unless given."""
SHARED2 = dict(kind="shared", base="code2", bases=1, sides="both", terms=1)

VARIANTS = {
    # (a) the layers' own experts, fine-tuned as long as the others
    "dense": dict(kind="dense", base="bf16", lr=5e-4),
    # (b) pure rotors
    "rotor1": dict(kind="rotor", terms=1),
    "rotor8": dict(kind="rotor", terms=8),
    "rotor32": dict(kind="rotor", terms=32),
    # (c) a shared base and rotors
    "shared_bf16": SHARED2 | dict(base="bf16"),
    "shared_code2": SHARED2,
    # (d) low rank at the stored bytes of each of those
    "lowrank_all2": dict(kind="collapsed", base="low:2", bases=1, experts=1),
    "lowrank1": dict(kind="lowrank", base="low:1"),
    "lowrank3": dict(kind="lowrank", base="low:3"),
    "lowrank4": dict(kind="lowrank", base="low:4"),
    "lowrank16": dict(kind="lowrank", base="low:16"),
    # (e) the experts in codewords
    "code2": dict(kind="code2", base="code2"),
    # (f) one shared expert instead of eight
    "collapsed": dict(kind="collapsed", base="code2", bases=1, experts=1),
    "collapsed_double": dict(kind="collapsed", base="code2", bases=1, experts=1, width=512),
    "collapsed_320": dict(kind="collapsed", base="code2", bases=1, experts=1, width=320),
    # (g) nothing
    "removed": dict(kind="removed"),
    # the quality curve of the default form: 0 and 50 % are the base and shared_code2
    "curve25": SHARED2 | dict(layers=[3]),
    "curve75": SHARED2 | dict(layers=[1, 2, 3]),
    "curve100": SHARED2 | dict(layers=[0, 1, 2, 3]),
    # candidates for a seeded form that beats its rivals
    "rotor8_signs": dict(kind="rotor", terms=8, signs=True),
    "rotor8_all": dict(kind="rotor", terms=8, routed=False),
    "shared_all8": SHARED2 | dict(routed=False),
    "shared_all2": SHARED2 | dict(routed=False, experts=2),
    "shared_terms4": SHARED2 | dict(terms=4),
    "shared_signs": SHARED2 | dict(signs=True),
    "shared_int8": SHARED2 | dict(angle_bits=8),
    "shared_in": SHARED2 | dict(sides="in"),
    "shared_2bases": SHARED2 | dict(bases=2),
    "shared_4bases": SHARED2 | dict(bases=4),
    "code2_rotors": SHARED2 | dict(bases=8),
    "shared_code1": SHARED2 | dict(base="code1"),
    "code1": dict(kind="code1", base="code1"),
    "code1_rotors": SHARED2 | dict(base="code1", bases=8),
}

ROWS = {
    "base": "nothing (0 %)",
    "dense": "its own experts, fine-tuned as long as the rest",
    "code2": "2-bit experts, straight-through",
    "code1": "1-bit experts, straight-through",
    "lowrank16": "rank 16",
    "lowrank4": "rank 4",
    "lowrank3": "rank 3",
    "lowrank1": "rank 1",
    "lowrank_all2": "one shared expert of rank 2",
    "collapsed_double": "one shared 2-bit expert, width 512",
    "collapsed_320": "one shared 2-bit expert, width 320",
    "collapsed": "one shared 2-bit expert, width 256",
    "removed": "nothing in their place",
    "rotor1": "rotors, 1 term",
    "rotor8": "rotors, 8 terms",
    "rotor32": "rotors, 32 terms",
    "shared_bf16": "bf16 base + rotors",
    "shared_code2": "2-bit base + rotors (50 %)",
    "curve25": "2-bit base + rotors (25 %)",
    "curve75": "2-bit base + rotors (75 %)",
    "curve100": "2-bit base + rotors (100 %)",
    "rotor8_signs": "rotors, 8 terms between seeded ±1 diagonals",
    "rotor8_all": "rotors, 8 terms, all eight experts always on",
    "shared_all8": "2-bit base + rotors, all eight always on",
    "shared_all2": "2-bit base + rotors, two experts always on",
    "shared_terms4": "2-bit base + rotors, 4 terms a side",
    "shared_signs": "2-bit base + rotors between seeded ±1 diagonals",
    "shared_int8": "2-bit base + rotors with int8 angles",
    "shared_in": "2-bit base + rotors on the input side only",
    "shared_2bases": "two 2-bit bases + rotors",
    "shared_4bases": "four 2-bit bases + rotors",
    "code2_rotors": "eight 2-bit bases + rotors",
    "shared_code1": "1-bit base + rotors",
    "code1_rotors": "eight 1-bit bases + rotors",
}
