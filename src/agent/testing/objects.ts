/** Objects that agents read, as the controller writes them. */

/** The EgressTunnel of a node that has this number; `agentPart` is what the agent of the node has added to its tunnel. */
export const tunnelObject = (name: string, number: number, agentPart: object = {}): object => ({
  metadata: { name },
  status: {
    phase: 'Ready',
    mark: `0x26000${number}00`,
    tunnel: {
      ipv4: `172.31.0.${number}`,
      ipv6: `fd11::${number}`,
      mac: `66:66:00:00:00:0${number}`,
      ...agentPart,
    },
  },
});
