import { setting } from "@turnbox/core";

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;

/** How much the records of a host may take: results, answers by idempotency key, environments, and the disk that they are on. */
export const RECORD_SETTINGS = {
  toolResultSession: setting.bytes({
    env: "TURNBOX_TOOL_RESULT_SESSION",
    description:
      "What the results of a session's tool calls may take; over it the oldest are kept without their output.",
    default: 64 * MiB,
    min: MiB,
  }),
  toolResultTotal: setting.bytes({
    env: "TURNBOX_TOOL_RESULT_TOTAL",
    description: "The same for all sessions together; over it those that hold most lose their oldest.",
    default: GiB,
    min: 16 * MiB,
  }),
  maxReceiptsPerSession: setting.int({
    env: "TURNBOX_MAX_RECEIPTS_PER_SESSION",
    description: "Most answers to requests with an idempotency key that are kept, for a day, for each session.",
    default: 10_000,
    min: 100,
    max: 1_000_000,
  }),
  maxReceiptsTotal: setting.int({
    env: "TURNBOX_MAX_RECEIPTS_TOTAL",
    description: "The same for all sessions together; over it those that hold most lose their oldest.",
    default: 200_000,
    min: 1000,
    max: 10_000_000,
  }),
  receiptSession: setting.bytes({
    env: "TURNBOX_RECEIPT_SESSION",
    description: "What these answers may take for each session.",
    default: 16 * MiB,
    min: MiB,
  }),
  receiptTotal: setting.bytes({
    env: "TURNBOX_RECEIPT_TOTAL",
    description: "What these answers may take for all sessions together.",
    default: 128 * MiB,
    min: 16 * MiB,
  }),
  environmentTotal: setting.bytes({
    env: "TURNBOX_ENVIRONMENT_TOTAL",
    description: "What the environments of all sessions may take; those that are the same count once.",
    default: 64 * MiB,
    min: MiB,
  }),
  dataReserve: setting.bytes({
    env: "TURNBOX_DATA_RESERVE",
    description:
      "With less free on the disk of the data directory, calls that change something are refused; 0 never does.",
    default: 512 * MiB,
  }),
} as const;
