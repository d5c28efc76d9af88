import { defineConfig } from "eslint/config";
import importX from "eslint-plugin-import-x";
import tseslint from "typescript-eslint";
import { layersRule } from "./scripts/lint/layers-rule.mjs";

const TYPESCRIPT = ["packages/*/src/**/*.ts", "test/**/*.ts", "bench/**/*.ts", "examples/**/*.ts"];
const TESTS = ["**/*.test.ts", "**/*.suite.ts", "**/fake/**/*.ts", "test/**/*.ts"];
const PRODUCT = ["packages/*/src/**/*.ts"];

const NODE_GLOBALS = Object.fromEntries(
  ["AbortSignal", "Buffer", "URL", "clearInterval", "clearTimeout", "console", "performance", "process"]
    .concat(["setInterval", "setTimeout"])
    .map((name) => [name, "readonly"]),
);

const everywhere = {
  complexity: ["error", 12],
  eqeqeq: "error",
  "max-lines": ["warn", { max: 400, skipBlankLines: true, skipComments: true }],
  "no-constant-condition": ["error", { checkLoops: "allExceptWhileTrue" }],
  "no-fallthrough": "error",
  "no-unsafe-finally": "error",
  "no-useless-escape": "error",
  "no-var": "error",
  "object-shorthand": "error",
  "prefer-const": "error",
};

/** Time and chance come from the injected clock and id sources, so that tests decide them. */
const clockRules = {
  "no-restricted-properties": [
    "error",
    { object: "Date", property: "now", message: "Take the time from the injected clock." },
    { object: "Math", property: "random", message: "Take ids and jitter from an injected source." },
  ],
  "no-restricted-globals": [
    "error",
    ...["setTimeout", "setInterval"].map((name) => ({ name, message: "Wait with the injected clock." })),
  ],
  "no-restricted-imports": [
    "error",
    { paths: [{ name: "node:timers/promises", message: "Wait with the injected clock." }, "node:timers"] },
  ],
};

/** A rejection without a handler ends a service, and `void` is no handler. */
const promiseRules = { "@typescript-eslint/no-floating-promises": ["error", { ignoreVoid: false }] };

const environmentRule = [
  "error",
  {
    selector:
      "MemberExpression[object.name='process'][property.name='env'], MemberExpression[object.name='process'][property.value='env']",
    message: "The environment is read in config.ts only.",
  },
  {
    selector: "ImportDeclaration[source.value=/^(node:)?process$/]",
    message: "Use the global process; its environment is read in config.ts only.",
  },
];

/** What others install runs on their machines: nothing of it that only Linux has. */
const PORTABLE = ["packages/{client,agents,cli}/src/**/*.ts"];
const LINUX_ONLY = [
  "PERL",
  "createAide",
  "createFifoSupply",
  "parentDeath",
  "readMembarrier",
  "takeStdio",
  "withoutMembarrier",
];
const linuxImportRule = [
  "error",
  {
    paths: [
      { name: "@turnbox/core", importNames: LINUX_ONLY, message: "Only Linux has it, and this runs elsewhere too." },
    ],
  },
];
const linuxPathRules = ["Literal[value=/^\\/(proc|sys)\\//]", "TemplateElement[value.raw=/^\\/(proc|sys)\\//]"].map(
  (selector) => ({ selector, message: "Only Linux has this path, and this runs elsewhere too." }),
);

export default defineConfig(
  {
    ignores: [
      "**/gen/",
      "**/dist/",
      "**/bundle/",
      "**/node_modules/",
      ".toolchain/",
      "coverage/",
      "bench/results/",
      "test/house/cycle/",
    ],
  },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    files: ["**/*.mjs"],
    languageOptions: { ecmaVersion: 2023, sourceType: "module", globals: NODE_GLOBALS },
    rules: { ...everywhere, "no-undef": "error", "no-unused-vars": ["error", { argsIgnorePattern: "^_" }] },
  },
  {
    files: TYPESCRIPT,
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: ["tsconfig.lint.json"], tsconfigRootDir: import.meta.dirname } },
    plugins: { "import-x": importX, house: { rules: { layers: layersRule } } },
    settings: {
      "import-x/extensions": [".ts"],
      "import-x/resolver-next": [importX.createNodeResolver({ extensions: [".ts", ".js"] })],
    },
    rules: {
      ...everywhere,
      "house/layers": "error",
      "import-x/no-cycle": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "@typescript-eslint/consistent-type-definitions": "off",
      // Adapters keep a port's promise also where nothing is awaited.
      "@typescript-eslint/require-await": "off",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_", ignoreRestSiblings: true },
      ],
      // It knows no type arguments of calls: `Promise.withResolvers<void>()`.
      "@typescript-eslint/no-invalid-void-type": "off",
      // Our objects are made by functions, not by classes: their methods close over what they need and use no `this`.
      "@typescript-eslint/unbound-method": "off",
      // `noPropertyAccessFromIndexSignature` asks for the brackets that this rule would take away.
      "@typescript-eslint/dot-notation": "off",
    },
  },
  { files: PRODUCT, rules: { ...clockRules, ...promiseRules, "no-restricted-syntax": environmentRule } },
  {
    files: ["packages/*/src/config.ts", "packages/*/src/main.ts", "packages/cli/src/**/*.ts"],
    rules: { "no-restricted-syntax": "off" },
  },
  {
    files: PORTABLE,
    ignores: TESTS,
    rules: {
      "@typescript-eslint/no-restricted-imports": linuxImportRule,
      "no-restricted-syntax": [...environmentRule, ...linuxPathRules],
    },
  },
  {
    files: ["packages/{client,agents,cli}/src/{config,main}.ts", "packages/cli/src/**/*.ts"],
    ignores: TESTS,
    rules: { "no-restricted-syntax": ["error", ...linuxPathRules] },
  },
  {
    // What starts and removes services of this machine, and what does without the path elsewhere.
    files: [
      "packages/cli/src/{service,doctor}/**/*.ts",
      "packages/cli/src/verb/{up,down,reset,doctor}.ts",
      "packages/cli/src/process/terminal-input.ts",
      "packages/agents/src/provider/sync/held-directory.ts",
    ],
    rules: { "@typescript-eslint/no-restricted-imports": "off", "no-restricted-syntax": "off" },
  },
  {
    files: ["packages/core/src/testing/**/*.ts", ...TESTS],
    rules: {
      "no-restricted-properties": "off",
      "no-restricted-globals": "off",
      "no-restricted-imports": "off",
      "no-restricted-syntax": "off",
      // In a test it ends the test, which is what it is for.
      "@typescript-eslint/no-floating-promises": ["error", { ignoreVoid: true }],
    },
  },
  {
    // Child processes, sockets and the process itself live in real time.
    files: [
      "packages/core/src/{async,command}/**/*.ts",
      "packages/rpc/src/server/**/*.ts",
      "packages/*/src/{main,serve}.ts",
    ],
    rules: { "no-restricted-properties": "off", "no-restricted-globals": "off", "no-restricted-imports": "off" },
  },
  {
    files: TESTS,
    rules: {
      "max-lines": ["warn", { max: 600, skipBlankLines: true, skipComments: true }],
      "@typescript-eslint/no-non-null-assertion": "off",
    },
  },
);
