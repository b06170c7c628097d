/** What is said about a node that notices losses later than configured. */
import { type Finding, finding } from '../cluster/finding.ts';

export const detectionFinding = (node: string, detectionMs: number): Finding =>
  finding(
    'DetectionSlowed',
    `Node ${node} notices the loss of a gateway node after up to ${detectionMs} ms: it, or nodes that it watches, have too little processor.`,
  );
