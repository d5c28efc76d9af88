// One place for all test projects. `*.contract.test.ts` runs a port's suite on an adapter and may need real system parts;
// other tests beside the code need none. e2e, faults, attacks and soak drive the built services; soak is not part of
// `npm test`.
const common = {
  rootDir: import.meta.dirname,
  extensionsToTreatAsEsm: [".ts"],
  moduleNameMapper: {
    "^@turnbox/protocol/(.*)$": "<rootDir>/packages/protocol/src/gen/$1.ts",
    "^@turnbox/core/(command|sqlite|testing)$": "<rootDir>/packages/core/src/$1/index.ts",
    "^@turnbox/core/testing/suites$": "<rootDir>/packages/core/src/testing/suites.ts",
    "^@turnbox/rpc/(client|metrics|server|trace|wire)$": "<rootDir>/packages/rpc/src/$1/index.ts",
    "^@turnbox/client/(fake|internal)$": "<rootDir>/packages/client/src/$1/index.ts",
    "^@turnbox/agents/mcp$": "<rootDir>/packages/agents/src/mcp/index.ts",
    "^@turnbox/agents/testing$": "<rootDir>/packages/agents/src/provider/conformance/index.ts",
    "^@turnbox/([a-z-]+)$": "<rootDir>/packages/$1/src/index.ts",
  },
  transform: {
    "\\.ts$": [
      "@swc/jest",
      { jsc: { target: "es2022", parser: { syntax: "typescript" } }, module: { type: "es6" }, sourceMaps: "inline" },
    ],
  },
  // A slow machine (the virtual one of `npm run vm-test`) multiplies all timeouts.
  testEnvironment:
    process.env.TURNBOX_TEST_TIMEOUT_FACTOR === undefined ? "node" : "<rootDir>/test/support/patient-environment.mjs",
  testPathIgnorePatterns: ["/node_modules/"],
  // Copies of packages in build output and in the toolchain would clash with the packages themselves.
  modulePathIgnorePatterns: ["<rootDir>/packages/[^/]+/dist/", "<rootDir>/\\.toolchain/"],
};

const project = (displayName, testMatch, more = {}) => ({ ...common, displayName, testMatch, ...more });

export default {
  // Many tests start a whole host with its worker processes, and the machine may be busy. No project has its own.
  testTimeout: 30_000,
  projects: [
    project(
      "unit",
      [
        "<rootDir>/packages/*/src/**/*.test.ts",
        "<rootDir>/test/house/**/*.test.ts",
        "<rootDir>/test/sim/**/*.test.ts",
        "<rootDir>/bench/**/*.test.ts",
      ],
      { testPathIgnorePatterns: ["\\.contract\\.test\\.ts$", "/node_modules/"] },
    ),
    project("contract", ["<rootDir>/packages/*/src/**/*.contract.test.ts"]),
    project("e2e", ["<rootDir>/test/e2e/**/*.test.ts"]),
    project("faults", ["<rootDir>/test/faults/**/*.test.ts"]),
    project("attacks", ["<rootDir>/test/attacks/**/*.test.ts"]),
    project("soak", ["<rootDir>/test/soak/**/*.test.ts"]),
  ],
};
