import path from "node:path";
import { bundleCli } from "./bundle-cli.mjs";
import { bundleServices } from "./bundle-services.mjs";
import { bundle, root } from "./layout.mjs";

// The kit for traces is a dependency of rpc and is found from there only; few want it.
await bundleCli({ folder: path.join(root, path.dirname(bundle)), external: ["@turnbox/rpc/trace"] });
await bundleServices({ root });
