import { CreateMultipartUploadCommand, UploadPartCommand } from "@aws-sdk/client-s3";
import { expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import { call } from "../suite/suite-fixture.suite.ts";
import { clientOf, listUploads, openTestStore, startVersityS3 } from "./s3-servers.suite.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

const server = await startVersityS3();

if (server === undefined) it.skip("the S3 adapter against versitygw", () => undefined);
else {
  it("removes the parts of puts that crashed when they are a day old, and those of no other prefix", async () => {
    await using running = server;
    using client = clientOf(running);
    for (const key of ["turnbox/tests/crashed", "others/large"]) {
      const where = { Bucket: running.bucket, Key: key };
      const { UploadId } = await client.send(new CreateMultipartUploadCommand(where));
      await client.send(new UploadPartCommand({ ...where, UploadId, PartNumber: 1, Body: Buffer.from("part") }));
    }
    await using today = openTestStore(running);
    await today.check(call);
    expect(await listUploads(running)).toHaveLength(2);
    await using later = openTestStore(running, {
      clock: { ...systemClock, nowMs: () => Date.now() + 2 * DAY_MS },
    });
    await later.check(call);
    expect(await listUploads(running)).toEqual(["others/large"]);
  });
}
