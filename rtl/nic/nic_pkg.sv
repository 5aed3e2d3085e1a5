// Sizes and records that the blocks of the compute-NIC share; nothing here has state or latency.
//
// The numbers of the frame format (opcodes, fates, counters) are nic_frame_pkg, which is generated.
// Bytes of headers and of first payload bytes stand as in the frame, byte 0 on top; beats of raw frames
// have byte 0 in [7:0].
package nic_pkg;
  // A block uses only some of the constants of its unit.
  /* verilator lint_off UNUSEDPARAM */
  localparam int unsigned DATA_W = 512;      // a beat
  localparam int unsigned BEAT_BYTES = DATA_W / 8;
  localparam int unsigned SLOTS = 64;        // operations in the making or to be acknowledged
  localparam int unsigned SLOT_W = 6;
  localparam int unsigned PARK = 512;        // contributions that wait for their turn
  localparam int unsigned NET_BUFS = 640;    // frame buffers of a network port
  localparam int unsigned HOST_BUFS = 256;    // the host: its own share of up to 64 slots, three full queues
  localparam int unsigned BUF_W = 10;
  localparam int unsigned BUF_BEATS = 144;   // 9,216 bytes: Ethernet, tag, IPv4 with options, UDP 9,000
  localparam int unsigned BEAT_W = 8;
  localparam int unsigned JOBS = 32;
  localparam int unsigned JOB_W = 5;
  localparam int unsigned NODES = 256;
  localparam int unsigned RANK_W = 8;
  localparam int unsigned MEMBERS = 32;      // members of a job, and contributors of an operation
  localparam int unsigned MEMBER_W = 5;
  localparam int unsigned PAGE_W = 24;       // pages of 4,096 bytes of KV memory: an entry's first page
  localparam int unsigned PAGES = 1 << 20;   // pages that have a valid bit
  localparam int unsigned LATE = 4096;       // completed keys remembered
  localparam int unsigned KEY_W = 112;       // {job, request, layer, head0, block}
  localparam int unsigned HDR_W = 256;
  localparam int unsigned TXQ = 64;          // transmit descriptors that wait at a port

  // Where a frame came from, and which memory holds it. MEM_RESULT: the merge engine's.
  localparam logic [1:0] SRC_NET0 = 2'd0;
  localparam logic [1:0] SRC_NET1 = 2'd1;
  localparam logic [1:0] SRC_HOST = 2'd2;
  localparam logic [1:0] MEM_RESULT = 2'd3;

  // Readers of the frame memories, in the crossbar's order.
  localparam int unsigned CONSUMERS = 5;
  localparam int unsigned CONS_TX0 = 0;
  localparam int unsigned CONS_TX1 = 1;
  localparam int unsigned CONS_TXH = 2;
  localparam int unsigned CONS_MERGE = 3;
  localparam int unsigned CONS_KVWR = 4;

  // The Millrace header, byte 0 on top.
  typedef struct packed {
    logic [7:0]  version;
    logic [7:0]  opcode;
    logic [7:0]  dtype;
    logic [7:0]  flags;
    logic [15:0] job;
    logic [7:0]  shard;
    logic [7:0]  shards;
    logic [31:0] request;
    logic [15:0] layer;
    logic [15:0] head0;
    logic [15:0] heads;
    logic [15:0] dim;
    logic [31:0] epoch;
    logic [31:0] block;
    logic [31:0] offset;
  } hdr_t;

  // A received frame: what the parser found, and where the frame lies.
  typedef struct packed {
    logic [1:0]   src;
    logic [9:0]   buf_id;
    logic         nobuf;    // no buffer was free, or none is large enough: the frame's bytes are gone
    logic [5:0]   fate;     // FATE_NONE, or what the parser found where it is not the end of it
    logic [17:0]  bytes;    // of the raw frame; more than a buffer holds only with nobuf
    logic [6:0]   mr_off;   // of the Millrace header in the raw frame
    logic [13:0]  pay_len;  // bytes after the Millrace header
    logic [15:0]  sum;      // ones' complement sum of those, folded, an odd byte padded with zero
    logic [255:0] hdr;
    logic [63:0]  pay0;     // the first 8 payload bytes, zero where there are none
    logic [47:0]  dst_mac;
  } meta_t;
  localparam int unsigned META_W = 442; // bits of meta_t

  localparam logic [1:0] TX_RAW = 2'd0;    // the frame as it lies in its buffer
  localparam logic [1:0] TX_BUILD = 2'd1;  // new headers round a payload, once for each target
  localparam logic [1:0] TX_KV = 2'd2;     // frames that the port's nic_kvrd makes

  // Work for a transmit port.
  typedef struct packed {
    logic [1:0]   kind;
    logic [1:0]   mem;
    logic [9:0]   buf_id;   // the slot when mem is MEM_RESULT
    logic [12:0]  off;      // byte offset of the payload in the buffer
    logic [13:0]  len;      // RAW: bytes of the frame; BUILD: of the payload
    logic         inl;      // the payload is the first len bytes of pay64 (len 0 or 8), no buffer
    logic [63:0]  pay64;
    logic [15:0]  sum;      // of the payload
    logic [255:0] hdr;
    logic         direct;   // one target: rank
    logic [7:0]   rank;
    logic [4:0]   job;      // row of the job table: what members index
    logic [31:0]  members;  // targets by member index
    logic         host;     // the target is the own host: own addresses at both ends
    logic         wait_res; // until the slot's result is there; len is right, sum comes from the slot
    logic         wait_kv;  // until the write with this token has its response
    logic [7:0]   token;
    logic         rel;      // drop one reference of the buffer after the last read of it
    logic         retrans;  // set bit 1 of the flags
  } txd_t;
  localparam int unsigned TXD_W = 437; // bits of txd_t

  // One contribution for the merge engine, which drops one reference of the buffer when it has read it.
  typedef struct packed {
    logic [5:0]  slot;
    logic [1:0]  mem;
    logic [9:0]  buf_id;
    logic [12:0] off;       // byte offset of the payload in the buffer
    logic        reduce;    // else merge
    logic [2:0]  dtype;
    logic [1:0]  rop;       // 0 sum, 1 max, 2 min
    logic        nat;       // exponents are natural
    logic [15:0] heads;
    logic [15:0] dim;
    logic        first;     // of its slot
    logic        last;      // of its slot: finish the result
  } fold_t;
  localparam int unsigned FOLD_W = 72; // bits of fold_t

  // A block of a buffer to memory.
  typedef struct packed {
    logic [1:0]  mem;
    logic [9:0]  buf_id;
    logic [12:0] off;
    logic [12:0] len;       // 1 .. 4096
    logic [63:0] addr;
    logic [7:0]  token;     // writes are numbered in order
  } kvw_t;
  localparam int unsigned KVW_W = 110; // bits of kvw_t

  // A read to be served: KV_DATA frames with this header, offset counting on.
  typedef struct packed {
    logic [63:0]  addr;
    logic [31:0]  len;
    logic [31:0]  offset;
    logic [255:0] hdr;
    logic [7:0]   token;    // read only when the write with this token has its response
  } kvr_t;
  localparam int unsigned KVR_W = 392; // bits of kvr_t

  // A row of the job table.
  typedef struct packed {
    logic         valid;
    logic [15:0]  job;
    logic [5:0]   count;    // members, 1 .. 32
    logic [255:0] ranks;    // rank of member index k in [8k +: 8], ascending
    logic [4:0]   root;     // member index
    logic         self;     // the own rank is a member
    logic [4:0]   self_idx;
    logic [31:0]  port1;    // members behind network port 1
  } job_t;
  localparam int unsigned JOB_ROW_W = 322; // bits of job_t

  // A row of the node table.
  typedef struct packed {
    logic        valid;
    logic [47:0] mac;
    logic [31:0] ip;
    logic [15:0] port;
    logic        netport;
  } node_t;
  localparam int unsigned NODE_W = 98; // bits of node_t

  // What the directory says about a (job, layer, block).
  typedef struct packed {
    logic        hit;
    logic [4:0]  owner;     // member index
    logic [31:0] named;     // owner and replicas, by member index
    logic [31:0] epoch;
    logic [31:0] bytes;
    logic [23:0] page;      // of the block's first byte in the own KV memory
  } dir_t;
  localparam int unsigned DIR_W = 126; // bits of dir_t

  // What a slot knows of its operation.
  typedef struct packed {
    logic [7:0]   opcode;   // of the contributions
    logic [7:0]   dtype;
    logic [7:0]   shards;
    logic [1:0]   rop;
    logic [15:0]  heads;
    logic [15:0]  dim;
    logic [4:0]   job_row;
    logic [4:0]   lowest;   // member index that epoch is from
    logic [31:0]  epoch;
    logic         reliable; // some contribution had bit 3
    logic         everyone; // or bit 6
    logic [13:0]  len;      // payload bytes of the result
    logic [111:0] key;
  } slot_t;
  localparam int unsigned SLOT_ROW_W = 228; // bits of slot_t

  // What happens to a frame or an operation at the end of the dispatch pipeline.
  localparam logic [1:0] WORK_FRAME = 2'd0;
  localparam logic [1:0] WORK_RESEND = 2'd1;   // a result to the ranks that are silent
  localparam logic [1:0] WORK_SILENT = 2'd2;   // they stayed silent: give up
  localparam logic [1:0] WORK_TIMEOUT = 2'd3;  // contributions are missing: give up

  // What is to be done for it. Port masks: bit 0 network 0, bit 1 network 1, bit 2 the own host.
  typedef struct packed {
    logic [5:0]  fate;
    logic [2:0]  raw;       // the frame as it is
    logic [2:0]  copy;      // its payload under new headers, to members
    logic [31:0] members;   // of a copy or a result, the own one not
    logic        forward;   // a copy gets bit 7
    logic [2:0]  answer;    // ACK or NACK to the sender
    logic        nack;
    logic [2:0]  reason;
    logic [31:0] epoch;     // NACK's current epoch
    logic [2:0]  result;
    logic        again;     // a resend of the result
    logic [2:0]  serve;     // KV_DATA
    logic        store;     // KV_WRITE to memory
    logic        put;       // into a slot
    logic        complete;  // which is complete then
    logic        payload;   // and has a payload to fold
    logic        kill;      // the slot's time is over
    logic        quiet;     // the silent ranks change
    logic [31:0] silent;    // to these
    logic        ev;
    logic [7:0]  ev_type;
    logic [7:0]  ev_opcode;
    logic [31:0] ev_ranks;
  } act_t;
  localparam int unsigned ACT_W = 178; // bits of act_t

  // The key of an operation.
  /* verilator lint_off UNUSEDSIGNAL */ // the rest of the header is not the key
  function automatic logic [KEY_W-1:0] key_of(input logic [HDR_W-1:0] h);
    key_of = {h[223:208], h[191:128], h[63:32]};
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  // Bytes of an element, log2; dtype 1 bf16, 2 fp16, 3 fp32, 4 int32.
  function automatic logic [1:0] dtype_log2(input logic [2:0] dtype);
    dtype_log2 = dtype == 3'd1 || dtype == 3'd2 ? 2'd1 : 2'd2;
  endfunction
  /* verilator lint_on UNUSEDPARAM */
endpackage
