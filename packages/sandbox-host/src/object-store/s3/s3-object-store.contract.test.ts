import { it } from "@jest/globals";
import { objectStoreSuite } from "../object-store.suite.ts";
import { createHarness, startMotoS3, startVersityS3 } from "./s3-servers.suite.ts";

const moto = await startMotoS3();
const versity = await startVersityS3();

if (moto === undefined) it.skip("the S3 adapter against moto", () => undefined);
else objectStoreSuite("s3 on moto", () => createHarness(moto), { nestedKeys: "stored" });

if (versity === undefined) it.skip("the S3 adapter against versitygw", () => undefined);
else objectStoreSuite("s3 on versitygw", () => createHarness(versity), { nestedKeys: "refused" });
