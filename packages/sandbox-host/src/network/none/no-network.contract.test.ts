import { NetworkBounds } from "../../network-policy/bounds.ts";
import { noNetworkSuite } from "../network.suite.ts";
import { createNoNetwork } from "./no-network.ts";

const bounds = new NetworkBounds({ privateRanges: [], allowMetadata: false });

noNetworkSuite("none, on a host without nftables", () => createNoNetwork({ kind: "absent", why: "no nft" }, bounds));
noNetworkSuite("none, in the machine's own network", () =>
  createNoNetwork({ kind: "open", why: "no isolation" }, bounds),
);
