/**
 * Network: nodes that run the protocol, the links between them, their kernels and the API server, on a virtual clock. It
 * does what it is told (cut, crash, pause, power off); chance only decides about single messages.
 */
import type { Ip } from '../../ip/index.ts';
import type { Holding, Message } from '../message.ts';
import type { Ownership as OwnershipClass, OwnershipSettings } from '../ownership.ts';
import type { Effect, HoldMode, Input, OwnershipPlan } from '../port.ts';
import type { Timing } from '../timing.ts';
import { Agenda } from './agenda.ts';
import type { Chance } from './chance.ts';
import {
  answersEchoes,
  createNode,
  holdInKernel,
  isKernelHolding,
  kernelMs,
  localMs,
  type Node,
  renewInKernel,
} from './node.ts';

/** What the links do to messages. */
export interface Links {
  readonly loss: number;
  readonly doubling: number;
  readonly delayMs: readonly [number, number];
  /** The part of messages that takes ten times as long. */
  readonly stragglers: number;
}

export type { Node } from './node.ts';

type Happening =
  | { readonly kind: 'wake'; readonly node: Node }
  | { readonly kind: 'arrive'; readonly node: Node; readonly input: Input; readonly incarnation: number }
  | { readonly kind: 'do'; readonly act: () => void };

export interface NetworkSettings {
  readonly chance: Chance;
  readonly names: readonly string[];
  readonly timing: Timing;
  readonly links: Links;
  /** How much faster or slower a clock may be. */
  readonly skew: number;
  /** The protocol; another one where a test breaks it on purpose. */
  readonly Ownership: new (
    settings: OwnershipSettings,
  ) => OwnershipClass;
  readonly onHold: (node: Node) => void;
  readonly onEffect?: (node: Node, effect: Effect) => void;
}

/** The lease in the API server, and how often it is tried. */
const TIE_MS = 150;
const TIE_EVERY_MS = 20;

export class Network {
  readonly nodes: readonly Node[];
  links: Links;
  timeMs = 0;
  readonly #settings: NetworkSettings;
  readonly #agenda = new Agenda<Happening>();
  readonly #nodeByName: ReadonlyMap<string, Node>;
  /** Pairs `from * 32 + to` that hear nothing of each other. */
  readonly #cuts = new Set<number>();
  #tie: { readonly holder: Node | undefined; readonly untilMs: number; readonly epoch: number } = {
    holder: undefined,
    untilMs: -Infinity,
    epoch: 0,
  };

  constructor(settings: NetworkSettings) {
    const { chance, names, skew } = settings;
    this.#settings = settings;
    this.links = settings.links;
    this.nodes = names.map((name, index) => createNode(name, index, skew, chance));
    this.#nodeByName = new Map(this.nodes.map((node) => [node.name, node]));
  }

  /** Does something at a time. */
  at(timeMs: number, act: () => void): void {
    this.#agenda.put(timeMs, { kind: 'do', act });
  }

  /** Lets time pass. */
  runUntil(timeMs: number, after: () => void): void {
    while (this.#agenda.nextAtMs <= timeMs) {
      this.timeMs = this.#agenda.nextAtMs;
      const happening = this.#agenda.take();
      if (happening !== undefined) this.#happen(happening);
      after();
    }
    this.timeMs = timeMs;
  }

  localMs(node: Node): number {
    return localMs(node, this.timeMs);
  }

  /** The epoch in which the kernel of a node answers for an EIP; undefined when it does not. */
  ownedEpoch(node: Node, eip: Ip): number | undefined {
    const entry = node.kernel.get(eip);
    return entry?.mode === 'owned' && this.isKernelHolding(node) ? entry.epoch : undefined;
  }

  /** Whether the kernel has not let go by itself. */
  isKernelHolding(node: Node): boolean {
    return isKernelHolding(node, this.timeMs);
  }

  /** Whether an agent runs and can act. */
  isActing(node: Node): boolean {
    return node.agent !== undefined && !node.isPaused;
  }

  /** Starts the agent, which finds what the kernel holds. */
  start(node: Node): void {
    if (!node.isPowered || node.agent !== undefined) return;
    const nowMs = this.localMs(node);
    const held: Holding[] = [];
    for (const [eip, { epoch, mode }] of node.kernel) {
      if (mode === 'owned' && this.isKernelHolding(node)) held.push({ eip, epoch });
    }
    node.incarnation += 1;
    node.isPaused = false;
    node.isTieWanted = false;
    node.tieRound += 1;
    node.wakeAtMs = Infinity;
    const { timing } = this.#settings;
    const { promisedUntilMs } = node;
    node.agent = new this.#settings.Ownership({ node: node.name, timing, held, promisedUntilMs, nowMs });
    node.heldUntilMs = held.length > 0 ? nowMs + node.leaseUntilMs - kernelMs(node, this.timeMs) : Infinity;
    node.seenSuspendedMs = node.suspendedMs;
    // What it finds it keeps for a while, whatever the others did meanwhile.
    node.excusedUntilMs = held.length > 0 ? this.timeMs + 1.1 * this.#settings.timing.foundMs : -Infinity;
    this.#give(node, { kind: 'plan', plan: node.plan });
  }

  /** Kills the agent. The kernel does not notice. */
  crash(node: Node): void {
    // The next one does not know what this one has promised, only when it ended.
    if (node.agent !== undefined) node.promisedUntilMs = this.localMs(node) + this.#settings.timing.widestMs;
    node.agent = undefined;
    node.isPaused = false;
    node.inbox.length = 0;
  }

  /** Stops the agent; what is sent to it waits. */
  pause(node: Node): void {
    if (node.agent === undefined || node.isPaused) return;
    node.isPaused = true;
    node.pausedAtMs = this.timeMs;
  }

  /** Suspends the machine until its agent is resumed: nothing answers, and what is sent to it is lost. */
  suspend(node: Node): void {
    this.pause(node);
    node.isSuspended = node.isPaused;
  }

  /** The clock of a node goes on by so much at once; `isSeen`: also that of its kernel. */
  jump(node: Node, byMs: number, isSeen: boolean): void {
    node.offsetMs += byMs;
    if (!isSeen) node.suspendedMs += byMs;
  }

  resume(node: Node): void {
    if (!node.isPaused || node.agent === undefined) return;
    node.isPaused = false;
    const forMs = this.timeMs - node.pausedAtMs;
    if (node.isSuspended) node.suspendedMs += node.rate * forMs;
    node.isSuspended = false;
    // It may hold for so much longer; an earlier stop, or its start, may excuse it for longer still.
    const untilMs = this.timeMs + 1.2 * Math.min(2 * forMs, this.#settings.timing.extensionMs);
    const wasExcused = node.excusedUntilMs > node.pausedAtMs;
    node.excusedUntilMs = Math.max(wasExcused ? node.excusedUntilMs + forMs : 0, untilMs);
    this.#catchUp(node);
  }

  /**
   * The process of a node gets a processor now and then only, until a time: short turns, and waits of which some are long. Nothing
   * excuses what it does, nor that it does nothing.
   */
  starve(node: Node, untilMs: number, longestMs: number): void {
    if (this.timeMs >= untilMs) return;
    const { chance } = this.#settings;
    node.isWaiting = true;
    const waitMs = chance.isLucky(0.1) ? chance.between(10, longestMs) : chance.between(0, 15);
    this.at(this.timeMs + waitMs, () => {
      node.isWaiting = false;
      if (!node.isPaused && node.agent !== undefined) this.#catchUp(node);
      this.at(this.timeMs + chance.between(0.1, 4), () => this.starve(node, untilMs, longestMs));
    });
  }

  /** Does what has waited. */
  #catchUp(node: Node): void {
    const inbox = node.inbox.splice(0);
    const { incarnation } = node;
    // Timers before packets, or the other way round: both happen.
    const isTimerFirst = this.#settings.chance.isLucky(0.5);
    if (isTimerFirst) this.#give(node, { kind: 'wake' });
    for (const input of inbox) {
      const isForRun = input.kind === 'message' || input.kind === 'echoed';
      if (!isForRun || node.incarnation === incarnation) this.#give(node, input);
    }
    if (!isTimerFirst) this.#give(node, { kind: 'wake' });
  }

  powerOff(node: Node): void {
    this.crash(node);
    node.isPowered = false;
    node.isSuspended = false;
    node.kernel = new Map();
  }

  powerOn(node: Node): void {
    node.isPowered = true;
    this.start(node);
  }

  cut(from: Node, to: Node): void {
    this.#cuts.add(from.index * 32 + to.index);
  }

  healLinks(): void {
    this.#cuts.clear();
  }

  setPlan(node: Node, plan: OwnershipPlan): void {
    node.plan = plan;
    this.tell(node, { kind: 'plan', plan });
  }

  /** Something happens to the node itself. */
  tell(node: Node, input: Input): void {
    if (node.agent === undefined || node.isSuspended) return;
    if (node.isPaused || node.isWaiting) node.inbox.push(input);
    else this.#give(node, input);
  }

  #happen(happening: Happening): void {
    if (happening.kind === 'do') {
      happening.act();
      return;
    }
    const { node } = happening;
    const { agent } = node;
    if (happening.kind === 'arrive') {
      const { input, incarnation } = happening;
      if (agent === undefined || incarnation !== node.incarnation) return;
      // What seals messages lets nothing of an earlier run through once a later one is known.
      const sender = input.kind === 'message' ? this.#nodeByName.get(input.from) : undefined;
      if (input.kind === 'message' && input.incarnation !== sender?.incarnation) return;
      this.tell(node, input);
    } else {
      if (this.timeMs < node.wakeAtMs) return;
      node.wakeAtMs = Infinity;
      if (agent === undefined || node.isPaused || node.isWaiting) return;
      if (this.localMs(node) >= agent.wakeAtMs) this.#give(node, { kind: 'wake' });
      else this.#schedule(node);
    }
  }

  #give(node: Node, input: Input): void {
    if (this.#beginsAnew(node) && input.kind === 'message') return;
    const { agent } = node;
    if (agent === undefined) return;
    const effects = agent.step(input, this.localMs(node));
    this.#schedule(node);
    for (const effect of effects) this.#take(node, effect);
  }

  /** Begins anew if too much time has passed, as src/agent/heartbeat/protocol-runner.ts does. True when it did: messages that waited are not read. */
  #beginsAnew(node: Node): boolean {
    const nowMs = this.localMs(node);
    const suspendedMs = node.suspendedMs - node.seenSuspendedMs;
    node.seenSuspendedMs = node.suspendedMs;
    if (node.agent?.isStale({ nowMs, heldUntilMs: node.heldUntilMs, suspendedMs }) !== true) return false;
    const { promisedUntilMs } = node.agent;
    holdInKernel(node, [], this.timeMs, this.#settings.timing.leaseMs);
    this.crash(node);
    node.promisedUntilMs = promisedUntilMs;
    this.start(node);
    return true;
  }

  #schedule(node: Node): void {
    if (node.agent === undefined) return;
    const { chance } = this.#settings;
    const dueMs = (node.agent.wakeAtMs - node.offsetMs) / node.rate;
    if (dueMs >= node.wakeAtMs) return;
    // No timer fires early, and few fire on time.
    const atMs = Math.max(this.timeMs, dueMs) + 0.001 + chance.next();
    node.wakeAtMs = atMs;
    this.#agenda.put(atMs, { kind: 'wake', node });
  }

  #take(node: Node, effect: Effect): void {
    this.#settings.onEffect?.(node, effect);
    switch (effect.kind) {
      case 'send':
        this.#carry(node, effect.to, effect.message);
        break;
      case 'echo':
        this.#echo(node, effect.node, effect.sequence);
        break;
      case 'hold':
        holdInKernel(node, effect.held, this.timeMs, this.#settings.timing.leaseMs);
        this.#prepare(node, effect.held);
        this.#settings.onHold(node);
        break;
      case 'renew':
        renewInKernel(node, this.timeMs, this.#settings.timing.leaseMs);
        break;
      case 'tie':
        this.#setTieWanted(node, effect.isWanted, effect.epoch);
        break;
      default:
    }
  }

  #prepare(node: Node, held: readonly { readonly eip: Ip; readonly mode: HoldMode }[]): void {
    const eips = held.filter(({ mode }) => mode === 'prepared').map(({ eip }) => eip);
    if (eips.length === 0) return;
    const { incarnation } = node;
    const atMs = this.timeMs + this.#settings.chance.between(1, 10);
    this.#agenda.put(atMs, { kind: 'arrive', node, input: { kind: 'prepared', eips }, incarnation });
  }

  #carry(from: Node, name: string, message: Message): void {
    const to = this.#nodeByName.get(name);
    if (to?.agent === undefined || !this.#isPassed(from, to)) return;
    const { chance } = this.#settings;
    const input: Input = { kind: 'message', from: from.name, incarnation: from.incarnation, message };
    const arrival: Happening = { kind: 'arrive', node: to, input, incarnation: to.incarnation };
    this.#agenda.put(this.timeMs + this.#delayMs(), arrival);
    if (chance.isLucky(this.links.doubling)) this.#agenda.put(this.timeMs + this.#delayMs(), arrival);
  }

  #echo(from: Node, name: string, sequence: number): void {
    const to = this.#nodeByName.get(name);
    if (to === undefined || !answersEchoes(to, this.timeMs) || !this.#isPassed(from, to) || !this.#isPassed(to, from))
      return;
    const { incarnation } = from;
    const input: Input = { kind: 'echoed', node: name, sequence };
    this.#agenda.put(this.timeMs + this.#delayMs() + this.#delayMs(), {
      kind: 'arrive',
      node: from,
      input,
      incarnation,
    });
  }

  #isPassed(from: Node, to: Node): boolean {
    return !this.#cuts.has(from.index * 32 + to.index) && !this.#settings.chance.isLucky(this.links.loss);
  }

  #delayMs(): number {
    const { chance } = this.#settings;
    const [low, high] = this.links.delayMs;
    return chance.between(low, high) * (chance.isLucky(this.links.stragglers) ? 10 : 1);
  }

  /** The lease of the API server, as a process keeps it: asked for again and again while it is wanted. */
  #setTieWanted(node: Node, isWanted: boolean, epoch: number): void {
    node.isTieWanted = isWanted;
    node.tieRound += 1;
    if (isWanted) this.#tryTie(node, node.tieRound, epoch);
    else {
      this.#give(node, { kind: 'tie', untilMs: undefined, epoch: 0 });
      if (node.hasApi && this.#tie.holder === node) this.#tie = { ...this.#tie, holder: undefined };
    }
  }

  #tryTie(node: Node, round: number, epoch: number): void {
    const isCurrent = (): boolean => node.isTieWanted && node.agent !== undefined && node.tieRound === round;
    if (!isCurrent()) return;
    this.at(this.timeMs + TIE_EVERY_MS, () => this.#tryTie(node, round, epoch));
    if (!node.hasApi || node.isPaused) return;
    const { holder, untilMs, epoch: recorded } = this.#tie;
    if (holder !== undefined && holder !== node && untilMs >= this.timeMs) return;
    const isSame = holder === node && untilMs >= this.timeMs;
    this.#tie = {
      holder: node,
      untilMs: this.timeMs + TIE_MS,
      epoch: Math.max(isSame ? recorded : recorded + 1, epoch),
    };
    const input: Input = { kind: 'tie', untilMs: this.localMs(node) + 0.8 * TIE_MS, epoch: this.#tie.epoch };
    // An answer to an earlier question is not taken for one to this: whoever asks waits for one answer at a time.
    this.at(this.timeMs + this.#settings.chance.between(2, 15), () => {
      if (isCurrent()) this.tell(node, input);
    });
  }
}
