/* What a configuration file may say, and the line that names what it must not. */
#include <cstring>
#include <string>

#include "host/nic/config.h"

#include <CppUTest/TestHarness.h>

namespace {

const char nodes[] = R"("nodes":[
    {"rank":2,"mac":"02:00:00:00:00:02","ip":"10.0.0.3"},
    {"rank":0,"mac":"02:00:00:00:00:0A","ip":"10.0.0.1","port":5000},
    {"rank":1,"mac":"02:00:00:00:00:01","ip":"10.0.0.2","port":19794}])";
const char jobs[] =
    R"("jobs":[{"job":1,"members":[2,0,1],"root":0},{"job":9,"members":[1],"root":1}])";

std::string file(const std::string &kv) {
    return std::string("{") + nodes + "," + jobs + ",\"kv\":[" + kv + "]}";
}

mr_status parse(const std::string &text, mr_nic_config *c) {
    return mr_nic_config_parse("some.json", text.data(), text.size(), c);
}

/* Refused, with a message that names the file and has the words. */
void refused(const std::string &text, const char *words) {
    mr_nic_config c;
    memset(&c, 0x5A, sizeof c);
    mr_nic_config before = c;
    mr_status e = parse(text, &c);
    CHECK_TEXT(e == MR_BAD_FORMAT, text.c_str());
    STRCMP_CONTAINS("some.json: ", mr_last_error());
    STRCMP_CONTAINS(words, mr_last_error());
    MEMCMP_EQUAL(&before, &c, sizeof c);
}

std::string with_nodes(const std::string &list) { return "{\"nodes\":[" + list + "]}"; }
const char node0[] = R"({"rank":0,"mac":"02:00:00:00:00:00","ip":"10.0.0.1","port":1})";

std::string with_jobs(const std::string &list) {
    return std::string("{") + nodes + ",\"jobs\":[" + list + "]}";
}

} // namespace

TEST_GROUP(config){};

TEST(config, rows_and_defaults) {
    mr_nic_config c;
    LONGS_EQUAL(MR_OK, parse(file(R"(
        {"job":1,"layer":3,"block":7,"owner":1,"replicas":[2,0],"epoch":3,"bytes":4097},
        {"job":1,"layer":0,"block":4294967295,"owner":2,"bytes":1})"),
                             &c));
    LONGS_EQUAL(3, c.num_nodes);
    for (unsigned i = 0; i < 3; i++)
        LONGS_EQUAL(i, c.nodes[i].rank);
    UNSIGNED_LONGS_EQUAL(0x0A000001, c.nodes[0].ip);
    LONGS_EQUAL(0x0A, c.nodes[0].mac[5]);
    LONGS_EQUAL(5000, c.nodes[0].port);
    LONGS_EQUAL(19794, c.nodes[2].port);
    LONGS_EQUAL(2, c.num_jobs);
    LONGS_EQUAL(3, c.jobs[0].count);
    for (unsigned i = 0; i < 3; i++)
        LONGS_EQUAL(i, c.jobs[0].members[i]);
    LONGS_EQUAL(0, c.jobs[0].root);
    LONGS_EQUAL(2, c.num_kv);
    LONGS_EQUAL(2, c.kv[0].count);
    LONGS_EQUAL(0, c.kv[0].replicas[0]);
    LONGS_EQUAL(3, c.kv[0].epoch);
    LONGS_EQUAL(0, c.kv[1].epoch);
    UNSIGNED_LONGS_EQUAL(0xFFFFFFFFu, c.kv[1].block);
    LONGS_EQUAL(2, mr_nic_config_pages(&c, 0)); /* 4097 bytes are two pages */
    LONGS_EQUAL(2, mr_nic_config_pages(&c, 1));
    LONGS_EQUAL(3, mr_nic_config_pages(&c, 2));
    CHECK(mr_nic_config_node(&c, 3) == nullptr);
    LONGS_EQUAL(9, mr_nic_config_job(&c, 9)->job);
    mr_nic_config_free(&c);
    LONGS_EQUAL(MR_OK, parse(with_nodes(node0), &c));
    LONGS_EQUAL(0, c.num_jobs + c.num_kv);
    mr_nic_config_free(&c);
}

TEST(config, text) {
    refused("", "line 1");
    refused("{", "line 1");
    refused("[]", "must be a JSON object");
    refused("{}", "nodes: is missing");
    refused(R"({"nodes":[]})", "nodes: is empty");
    refused(R"({"nodes":{}})", "nodes: must be a list");
    refused(std::string("{") + nodes + R"(,"job":[]})", "job: unknown key");
    refused(std::string("{") + nodes + "," + nodes + "}", "duplicate");
}

TEST(config, nodes) {
    const std::string n = node0;
    refused(with_nodes("7"), "nodes[0]: must be an object");
    refused(with_nodes(n + "," + n), "nodes[1].rank: 0 is the rank of nodes[0] too");
    refused(with_nodes(n + R"(,{"rank":1,"mac":"02:00:00:00:00:00","ip":"10.0.0.1","port":1})"),
            "nodes[1].mac: the address of nodes[0] too");
    refused(with_nodes(R"({"mac":"02:00:00:00:00:00","ip":"1.2.3.4"})"),
            "nodes[0].rank: is missing");
    refused(with_nodes(R"({"rank":256,"mac":"02:00:00:00:00:00","ip":"1.2.3.4"})"), "0 to 255");
    refused(with_nodes(R"({"rank":-1,"mac":"02:00:00:00:00:00","ip":"1.2.3.4"})"), "0 to 255");
    refused(with_nodes(R"({"rank":0.0,"mac":"02:00:00:00:00:00","ip":"1.2.3.4"})"),
            "nodes[0].rank");
    refused(with_nodes(R"({"rank":0,"ip":"1.2.3.4"})"), "nodes[0].mac: is missing");
    for (const char *mac : {"", "02:00:00:00:00", "02:00:00:00:00:0g", "02-00-00-00-00-00",
                            "02:00:00:00:00:000", "020000000000", "0x:00:00:00:00:00"})
        refused(with_nodes(std::string(R"({"rank":0,"ip":"1.2.3.4","mac":")") + mac + "\"}"),
                "nodes[0].mac: must be six bytes");
    refused(with_nodes(R"({"rank":0,"mac":"03:00:00:00:00:00","ip":"1.2.3.4"})"), "group address");
    refused(with_nodes(R"({"rank":0,"mac":"00:00:00:00:00:00","ip":"1.2.3.4"})"), "is zero");
    refused(with_nodes(R"({"rank":0,"mac":"02:00:00:00:00:00"})"), "nodes[0].ip: is missing");
    for (const char *ip : {"", "1.2.3", "1.2.3.256", "1.2.3.4.5", "node", "::1"})
        refused(
            with_nodes(std::string(R"({"rank":0,"mac":"02:00:00:00:00:00","ip":")") + ip + "\"}"),
            "nodes[0].ip: must be an IPv4 address");
    for (const char *ip : {"0.0.0.0", "224.0.0.1", "255.255.255.255"})
        refused(
            with_nodes(std::string(R"({"rank":0,"mac":"02:00:00:00:00:00","ip":")") + ip + "\"}"),
            "not the address of a host");
    for (const char *port : {"0", "65536", "-1", "\"1\"", "1.5"})
        refused(with_nodes(
                    std::string(R"({"rank":0,"mac":"02:00:00:00:00:00","ip":"1.2.3.4","port":)") +
                    port + "}"),
                "nodes[0].port: must be a whole number, 1 to 65535");
    refused(with_nodes(R"({"rank":0,"mac":"02:00:00:00:00:00","ip":"1.2.3.4","vlan":1})"),
            "nodes[0].vlan: unknown key");
}

TEST(config, jobs) {
    refused(with_jobs(R"({"job":1,"members":[0,3],"root":0})"),
            "jobs[0].members[1]: rank 3 is not in nodes");
    refused(with_jobs(R"({"job":1,"members":[0,1,0],"root":0})"),
            "jobs[0].members[2]: rank 0 is in the list twice");
    refused(with_jobs(R"({"job":1,"members":[0,1],"root":2})"),
            "jobs[0].root: rank 2 is not a member");
    refused(with_jobs(R"({"job":1,"members":[],"root":2})"), "jobs[0].members: is empty");
    refused(with_jobs(R"({"job":1,"root":2})"), "jobs[0].members: is missing");
    refused(with_jobs(R"({"job":1,"members":[0]})"), "jobs[0].root: is missing");
    refused(with_jobs(R"({"members":[0],"root":0})"), "jobs[0].job: is missing");
    refused(with_jobs(R"({"job":65536,"members":[0],"root":0})"), "0 to 65535");
    refused(with_jobs(R"({"job":1,"members":[0],"root":0},{"job":1,"members":[1],"root":1})"),
            "jobs[1].job: 1 is the job of jobs[0] too");
    std::string many, list;
    for (int i = 0; i < 33; i++) {
        char text[120];
        snprintf(text, sizeof text, R"(%s{"rank":%d,"mac":"02:00:00:00:01:%02x","ip":"10.0.1.%d"})",
                 i ? "," : "", i, i, i + 1);
        many += text;
        list += (i ? "," : "") + std::to_string(i);
    }
    refused("{\"nodes\":[" + many + "],\"jobs\":[{\"job\":1,\"members\":[" + list +
                "],\"root\":0}]}",
            "jobs[0].members: 33 entries, at most 32");
    list.clear();
    for (int i = 0; i < 33; i++)
        list += std::string(i ? "," : "") + R"({"job":)" + std::to_string(i) +
                R"(,"members":[0],"root":0})";
    refused(with_jobs(list), "jobs: 33 entries, at most 32");
}

TEST(config, kv) {
    const std::string ok = R"({"job":1,"layer":0,"block":7,"owner":1,"replicas":[2],"bytes":4096})";
    refused(file(ok + "," + R"({"job":1,"layer":0,"block":7,"owner":2,"bytes":1})"),
            "kv[1].block: job 1, layer 0, block 7 is the entry kv[0] too, with owner 1 there and 2 "
            "here");
    refused(file(R"({"job":1,"layer":0,"block":7,"owner":1,"replicas":[2,1],"bytes":4096})"),
            "kv[0].replicas[1]: rank 1 is the owner");
    refused(file(R"({"job":1,"layer":0,"block":7,"owner":1,"replicas":[2,2],"bytes":4096})"),
            "kv[0].replicas[1]: rank 2 is in the list twice");
    refused(file(R"({"job":9,"layer":0,"block":7,"owner":0,"bytes":4096})"),
            "kv[0].owner: rank 0 is not a member of job 9");
    refused(file(R"({"job":9,"layer":0,"block":7,"owner":1,"replicas":[2],"bytes":4096})"),
            "kv[0].replicas[0]: rank 2 is not a member of job 9");
    refused(file(R"({"job":9,"layer":0,"block":7,"owner":5,"bytes":4096})"), "kv[0].owner: rank 5");
    refused(file(R"({"job":2,"layer":0,"block":7,"owner":1,"bytes":4096})"),
            "kv[0].job: 2 is not in jobs");
    for (const char *key : {"job", "layer", "block", "owner", "bytes"}) {
        std::string text = ok;
        text.replace(text.find(key), strlen(key), "epoch");
        refused(file(text), (std::string("kv[0].") + key + ": is missing").c_str());
    }
    refused(file(R"({"job":1,"layer":65536,"block":7,"owner":1,"bytes":4096})"), "kv[0].layer");
    refused(file(R"({"job":1,"layer":0,"block":4294967296,"owner":1,"bytes":4096})"),
            "kv[0].block");
    refused(file(R"({"job":1,"layer":0,"block":0,"owner":1,"bytes":0})"), "kv[0].bytes");
    refused(file(R"({"job":1,"layer":0,"block":0,"owner":1,"bytes":1,"epoch":-1})"), "kv[0].epoch");
    refused(file(R"({"job":1,"layer":0,"block":0,"owner":1,"bytes":1,"ttl":1})"),
            "kv[0].ttl: unknown key");
}

TEST(config, no_such_file) {
    mr_nic_config c;
    LONGS_EQUAL(MR_IO_ERROR, mr_nic_config_load("/nowhere/nic.json", &c));
    STRCMP_CONTAINS("/nowhere/nic.json", mr_last_error());
}
