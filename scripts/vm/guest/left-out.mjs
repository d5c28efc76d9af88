const NO_STORAGE = "nothing in it depends on the storage, and each command takes seconds on a CPU in software";

/** What does not run in the guest, each with its reason. `test` is the beginning of full names of tests. */
export const LEFT_OUT = [
  {
    project: "contract",
    test: "zfs-fuse that dies",
    reason: "about the zfs-fuse daemon, which may be killed; OpenZFS is part of the kernel and has none",
  },
  {
    project: "e2e",
    test: "a server's life leaves no orphan when the npm process is killed",
    reason: "about npm and the bootstrap, which need a registry; the guest has no network",
  },
  { project: "e2e", test: "a server's life tells a second server on the home", reason: NO_STORAGE },
  { project: "e2e", test: "a server's life refuses", reason: NO_STORAGE },
  { project: "e2e", test: "the journey by the command line passes exit codes", reason: NO_STORAGE },
  { project: "e2e", test: "refusals", reason: NO_STORAGE },
  { project: "e2e", test: "ls --watch", reason: NO_STORAGE },
];
