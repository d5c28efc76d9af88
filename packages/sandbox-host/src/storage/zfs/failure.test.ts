import { describe, expect, it } from "@jest/globals";
import { classifyFailure, type Failure, storageError, withoutNames } from "./failure.ts";

/** Recorded from zfs-fuse 0.7.0. */
const FUSE: readonly (readonly [string, Failure])[] = [
  ["cannot create 'p/sessions/g1': dataset already exists\n", "exists"],
  ["cannot create snapshot 'p/sessions/g1@s1': dataset already exists\n", "exists"],
  ["cannot open 'p/bases/mini/deadbeef@nope': dataset does not exist\n", "not-found"],
  ["cannot create 'p/nosuch/g2': parent does not exist\n", "not-found"],
  ["cannot open 'nosuch': no such pool\n", "not-found"],
  ["cannot import 'nosuchpool': no such pool available\n", "not-found"],
  [
    "cannot import 'p': a pool with that name is already created/imported,\nand no additional pools with that name were found\n",
    "exists",
  ],
  [
    "cannot destroy 'p/bases/mini/ab@base': snapshot has dependent clones\nuse '-R' to destroy the following datasets:\np/sessions/g1@s1\np/sessions/g1\n",
    "dependents",
  ],
  [
    "cannot destroy 'p/s/g1': filesystem has dependent clones\nuse '-R' to destroy the following datasets:\np/s/g2\n",
    "dependents",
  ],
  [
    "cannot destroy 'p/s': filesystem has children\nuse '-r' to destroy the following datasets:\np/s/g1@s1\n",
    "children",
  ],
  ["cannot destroy 'p/sessions/g1': dataset is busy\n", "busy"],
  ["cannot receive incremental stream: invalid backup stream\n", "bad-stream"],
  ["cannot receive incremental stream: invalid stream (checksum mismatch)\n", "bad-stream"],
  ["cannot receive: invalid stream (bad magic number)\n", "bad-stream"],
  ["cannot receive: failed to read from stream\n", "bad-stream"],
  ["cannot receive incremental stream: out of space\n", "no-space"],
  ["cannot receive incremental stream: dataset is busy\n", "busy"],
  [
    "umount: /tmp/m/s1: target is busy.\ncannot unmount '/tmp/m/s1': umount failed: umount child process failed\n",
    "busy",
  ],
  ["cannot mount 'p/sessions/g1': filesystem already mounted\n", "already-mounted"],
  ["cannot mount '/tmp/m/t1/g1': directory is not empty\n", "not-empty"],
  [
    "zfsfuse_ioctl_read_loop(): file descriptor closed\ncannot mount 'p/b/ab': Input/output error.\nMake sure the FUSE module is loaded.\n",
    "daemon-not-running",
  ],
  ["cannot unmount 'p/sessions/g1': not currently mounted\n", "not-mounted"],
  ["cannot create 'p/sessions/g3': out of space\n", "no-space"],
  [
    "connect: No such file or directory\nPlease make sure that the zfs-fuse daemon is running.\ninternal error: failed to initialize ZFS library\n",
    "daemon-not-running",
  ],
  [
    "connect: Connection refused\nPlease make sure that the zfs-fuse daemon is running.\ninternal error: failed to initialize ZFS library\n",
    "daemon-not-running",
  ],
  ["connect: Permission denied\ninternal error: failed to initialize ZFS library\n", "permission"],
  ["invalid option 't'\nusage:\n\tget [-rHp] [-d max]\n", "other"],
];

/** In the words of OpenZFS 2.1 and 2.3. */
const OPENZFS: readonly (readonly [string, Failure])[] = [
  ["cannot destroy 'tank/s@a': dataset is busy\n", "busy"],
  ["cannot destroy snapshot tank/s@a: it's being held. Run 'zfs holds -r tank/s@a' to see holders.\n", "busy"],
  ["cannot unmount '/srv/x': pool or dataset is busy\n", "busy"],
  ["could not find any snapshots to destroy; check snapshot names.\n", "not-found"],
  ["The ZFS modules are not loaded.\nTry running '/sbin/modprobe zfs' as root to load them.\n", "daemon-not-running"],
  [
    "The ZFS modules cannot be auto-loaded.\nTry running 'modprobe zfs' as root to manually load them.\n",
    "daemon-not-running",
  ],
  ["Permission denied the ZFS utilities must be run as root.\n", "permission"],
  ["cannot set property for 'tank/s': size is less than current used or reserved space\n", "no-space"],
  ["cannot create snapshot 'tank/s@x': disk quota exceeded\n", "quota"],
  [
    "cannot import 'tank': a pool with that name already exists\nuse the form 'zpool import <pool | id> <newpool>' to give it a new name\n",
    "exists",
  ],
];

describe("classifyFailure", () => {
  it.each([...FUSE, ...OPENZFS])("sorts %j as %s", (stderr, failure) => {
    expect(classifyFailure(stderr)).toBe(failure);
  });

  it("is not misled by names", () => {
    expect(classifyFailure("cannot destroy 'p/bases/busybox/ab@base': snapshot has dependent clones\n")).toBe(
      "dependents",
    );
    expect(classifyFailure("cannot open 'p/bases/already-exists/ab': dataset does not exist\n")).toBe("not-found");
    expect(classifyFailure("something new about p/busy/not-mounted\n")).toBe("other");
  });
});

describe("withoutNames", () => {
  it("says what happened without saying where", () => {
    expect(withoutNames("cannot destroy 'tank/s/g1': dataset is busy\n")).toBe("cannot destroy: dataset is busy");
    expect(withoutNames("umount: /tmp/m/s1: target is busy.\n")).toBe("umount: target is busy.");
  });
});

describe("storageError", () => {
  it("is POOL_FULL for want of space, else STORAGE_UNAVAILABLE that can be tried again, the whole text in the cause", () => {
    expect(storageError("cloning", { failure: "no-space", stderr: "out of space" }).reason).toBe("POOL_FULL");
    const error = storageError("cloning", { failure: "busy", stderr: "cannot clone 'a/b': dataset is busy" });
    expect([error.reason, error.retryable, error.message]).toEqual([
      "STORAGE_UNAVAILABLE",
      true,
      "cloning failed: cannot clone: dataset is busy",
    ]);
    expect((error.cause as Error).message).toContain("a/b");
  });
});
