/** Where things are in the namespace of the benchmark. */
export const places = {
  /** The outside server: web on port 80, iperf3 on its own port, a TCP server that greets. */
  origin: '203.0.113.1',
  iperfPort: 5201,
  greetingPort: 5000,
  host: 'bench.test',
  /** Port of the TCP rule that leads to iperf3. */
  tcpPort: 4101,
} as const;
