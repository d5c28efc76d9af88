import { describe, expect, it } from "@jest/globals";
import { parseBytes, parseColumns, parseHealth, parseMountTable, parseProperties, parseVdevs } from "./parse.ts";

// Samples named FUSE are recorded from zfs-fuse 0.7.0, those named OPENZFS have the form of OpenZFS 2.1 and 2.3.
const FUSE_GET = `tbxprobe1/sessions\tcreation\t-\t1794803826
tbxprobe1/sessions\tquota\tlocal\t41943040
tbxprobe1/sessions\tavailable\t-\t1753088
tbxprobe1/sessions\tturnbox:home\tinherited from tbxprobe1\tabc
tbxprobe1/sessions/g1@full\tcreation\t-\t1794803899
tbxprobe1/sessions/g1@full\tcreatetxg\t-\t656
tbxprobe1/sessions/g1@full\tused\t-\t39985152
tbxprobe1/sessions/g1@full\tquota\t-\t-
tbxprobe1/sessions/g1@full\tturnbox:home\tlocal\tabc
`;
const OPENZFS_GET = `tank/s/g1@full\tused\t-\t0B
tank/s/g1@full\treferenced\t-\t24576
tank/s/g1#mark\tcreation\t-\t1794803899
`;
const FUSE_STATUS = `  pool: tbxprobe1
 state: ONLINE
 scrub: none requested
config:

\tNAME                       STATE     READ WRITE CKSUM
\ttbxprobe1                  ONLINE       0     0     0
\t  /tmp/stor.xL0S/pool.img  ONLINE       0     0     0

errors: No known data errors
`;
const OPENZFS_STATUS = `  pool: tank
 state: DEGRADED
status: One or more devices could not be used because the label is missing or
\tinvalid.  Sufficient replicas exist for the pool to continue
\tfunctioning in a degraded state.
action: Replace the device using 'zpool replace'.
  scan: resilvered 1.20M in 00:00:01 with 0 errors on Sun Nov 15 10:00:00 2026
config:

\tNAME                STATE     READ WRITE CKSUM
\ttank                DEGRADED     0     0     0
\t  mirror-0          DEGRADED     0     0     0
\t    /srv/a img.raw  ONLINE       0     0     0
\t    /srv/b.img      UNAVAIL      0     0 1.5K  corrupted data

errors: No known data errors
`;
const MOUNTINFO = `27 0 252:1 / / rw,relatime - ext4 /dev/root rw
43 27 0:40 / /tmp/p/m/base rw,relatime - fuse.zfs tbx/bases/mini rw,user_id=0,group_id=0,default_permissions,allow_other
47 27 0:46 / /tmp/with\\040space/s1 rw,nosuid,nodev,relatime shared:7 master:1 - fuse.zfs tbxprobe1/sessions/g1 rw,user_id=0,allow_other
51 27 0:47 / /srv/x rw,nosuid,nodev,noatime - zfs tank/s rw,xattr,noacl
`;

describe("parseProperties", () => {
  it("keeps a property's source, by which inherited marks differ from own ones", () => {
    const datasets = parseProperties(FUSE_GET);
    expect([...datasets.keys()]).toEqual(["tbxprobe1/sessions", "tbxprobe1/sessions/g1@full"]);
    expect(datasets.get("tbxprobe1/sessions")?.get("turnbox:home")).toEqual({
      source: "inherited from tbxprobe1",
      value: "abc",
    });
    expect(datasets.get("tbxprobe1/sessions/g1@full")?.get("turnbox:home")).toEqual({ source: "local", value: "abc" });
    expect(datasets.get("tbxprobe1/sessions/g1@full")?.get("createtxg")?.value).toBe("656");
  });

  it("leaves bookmarks out", () => {
    expect([...parseProperties(OPENZFS_GET).keys()]).toEqual(["tank/s/g1@full"]);
  });

  it("reads nothing from nothing", () => {
    expect(parseProperties("").size).toBe(0);
    expect(parseProperties("no tabs here\n").size).toBe(0);
  });
});

describe("parseBytes", () => {
  it("reads what both implementations write", () => {
    expect(["39985152", "0", "0B"].map(parseBytes)).toEqual([39985152, 0, 0]);
  });

  it("reads what does not apply as no bound", () => {
    expect(["-", "none", undefined].map(parseBytes)).toEqual([0, 0, 0]);
  });
});

describe("parseColumns", () => {
  it("splits a listing and leaves bookmarks out", () => {
    expect(parseColumns("tank/s/g1\t-\ntank/s/g2\ttank/s/g1@t\ntank/s/g1#b\t-\n")).toEqual([
      ["tank/s/g1", "-"],
      ["tank/s/g2", "tank/s/g1@t"],
    ]);
  });
});

describe("parseVdevs", () => {
  it("finds the image of a pool", () => {
    expect(parseVdevs(FUSE_STATUS, "tbxprobe1")).toEqual(["/tmp/stor.xL0S/pool.img"]);
  });

  it("finds everything of a pool that is made of more, failed parts included", () => {
    expect(parseVdevs(OPENZFS_STATUS, "tank")).toEqual(["mirror-0", "/srv/a img.raw", "/srv/b.img"]);
  });

  it("finds nothing for another pool", () => {
    expect(parseVdevs(FUSE_STATUS, "other")).toEqual([]);
  });
});

describe("parseMountTable", () => {
  it("reads paths with spaces, sources and flags, with or without propagation fields", () => {
    expect(parseMountTable(MOUNTINFO).slice(1)).toEqual([
      { path: "/tmp/p/m/base", source: "tbx/bases/mini", filesystem: "fuse.zfs", options: new Set(["rw", "relatime"]) },
      {
        path: "/tmp/with space/s1",
        source: "tbxprobe1/sessions/g1",
        filesystem: "fuse.zfs",
        options: new Set(["rw", "nosuid", "nodev", "relatime"]),
      },
      { path: "/srv/x", source: "tank/s", filesystem: "zfs", options: new Set(["rw", "nosuid", "nodev", "noatime"]) },
    ]);
  });
});

describe("parseHealth", () => {
  it("reads the state, and the fragmentation where there is one", () => {
    expect(parseHealth("ONLINE\n")).toEqual({ word: "ONLINE" });
    expect(parseHealth("ONLINE\t7%\n")).toEqual({ word: "ONLINE", fragmentationPercent: 7 });
    expect(parseHealth("DEGRADED\t-\n")).toEqual({ word: "DEGRADED" });
  });
});
