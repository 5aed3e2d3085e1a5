"""A compute-NIC read from its specification alone: frames, arithmetic, one node's behaviour, pcap files.

Nothing here knows the golden model or the RTL; the tests compare the command with it.
"""
