import { gunzipSync } from "node:zlib";

/**
 * A static x86-64 program without any library, for calls that no program of a small template makes:
 *
 *     s NUMBER ARG...   one system call, with its arguments as decimal numbers or `z` for 4 KiB of zeros
 *     u PATH            connects to a socket of the file system, or of the abstract names where PATH begins with @
 *     t COUNT           starts up to COUNT threads that wait for ever, tells how many there are, and waits too
 *
 * It prints the result in decimal: a negative one is an error number.
 */
export const SYSCALL_PROGRAM = gunzipSync(
  Buffer.from(
    "H4sIAAAAAAACA71U30sUURQ+s7sjauFdQ2p7CYkhMnBx3hSWWmO3zsD4INlT9KBrEBgm7ixpGBrjgtdB33oLLIpe+gdWJRs1ZtWHrJVMiXoqHdse" +
      "NKNNQW/d/SHrgtVDdF6+e8583z33nLn39AbVCw5BgJw54CxwzwZ/2vdn4zWuPQr4oRac4AcRXGmuCPnm34dlWV0OwZ0BrisCgMpsvLLCvw/3zL0f" +
      "Gz9prUXw95aTI11F/eO6/Si93rICEiutjx0FgPrRUh5LLSPBeaQzckKllpLaUNiMPlVzfqDJtYZ0Dukk6tsltz5glHWXspcYsqyAy64e83DxUECy" +
      "g3IiKJtVXzH0PSjPomDFeI0YSiCNE3F6kPRtVUecyOKySSaO9Se0I9hmluqfa5DFOUt4lVzNUFJL05cvof6lQzWIom85yPCIAIDGRbdCfwyCLxwJ" +
      "IV0dLQMA2ZxwAsDmU8Xwrcd48/rO3dZEe5gxptRtIA18s8nIlL5bQu6ZyKz+qcgb1WiSKlUjIJ1WDVWqQaNJ8qChSW40eqRiNFzS2l0A8EVIVM90" +
      "buKB0w+j7TxfYvOxYqBn0FXeb0ZcdCFZgWwK9e0bWtFAoEJIroy3/Wp3X4/k8EdEKyA5YIK3IdOcoDwbq0rvgjRFRKRxjJpk4H1WIcTOpPOt6O92" +
      "MLSQJqyZ/Cgaid7nn4xeT/3YSQBQ9BkWlGftJ7uMyWzMmdZZSKdjJXw5uXKYiAo1Mxm6ep/VAsBzICLICaVu+c6phqFGAamt0kXOVQWLiBg1IyUx" +
      "vjkRkymMmt1EpfPjPGDP7TCWFBvo6+QkLyRbC9IlpG+RLhIxaefFYz6ezZE+0yIRZWYP7jBWSMhJUX/RceXq9AH3V4D/at7w9bDWqTW3gFe71qWB" +
      "t/Nma7PWDN6WcPifJDiU9/Yhb87YWf+h4/f1l2djORq/mRnM+O0F/MoC/zgAFAOAEwrmTsF8Okgv5GnzLTffTvzh//0E4Ld7IXAFAAA=",
    "base64",
  ),
);
