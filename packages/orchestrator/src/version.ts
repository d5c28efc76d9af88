/** The version of the orchestrator. A test holds it equal to the package's. */
export const ORCHESTRATOR_VERSION = "0.1.0";
