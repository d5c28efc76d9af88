/** The version of the sandbox-host. A test holds it equal to the package's. */
export const HOST_VERSION = "0.1.0";
