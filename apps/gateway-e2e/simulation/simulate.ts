import type { BudgetLimits } from '@antiphon/metering-domain';
import { driveSessions, insist } from './agent-process.js';
import { sweepReservations } from './metering-process.js';
import type { Choose, Fiber, Process } from './scheduler.js';
import { LEASE_TICKS, createWorld } from './world.js';
import type { World } from './world.js';

const SESSIONS = ['s1', 's2'];
const COMMANDS = 4;
/** In a hundred steps. */
const FAULTS_PERCENT = 3;
const MAX_STEPS = 20_000;

const boot = (world: World, name: string, life: number): void => {
  const process: Process = { name, life, alive: true, stillUntil: 0 };
  world.processes.push(process);
  if (name !== 'metering') world.spawn(process, driveSessions(world, process));
};

/** Its fibers are gone, wherever they were; its leases stay until they lapse, or the supervisor frees them. */
const kill = (world: World, process: Process): void => {
  process.alive = false;
  const owner = `${process.name}/${process.life}`;
  if (world.choose(2) === 0)
    for (const session of world.store.sessions.values())
      if (session.lease.owner === owner) session.lease = { ...session.lease, until: world.now() };
  boot(world, process.name, process.life + 1);
};

const breakSomething = (world: World): void => {
  const alive = world.processes.filter((process) => process.alive);
  const process = alive[world.choose(alive.length)];
  if (!process) return;
  if (world.choose(2) === 0) kill(world, process);
  else process.stillUntil = world.now() + world.choose(3 * LEASE_TICKS);
};

/** Sends each of its commands until it is answered, and some of them twice; now and then it cancels. */
function* useSession(world: World, session: string): Fiber {
  for (let i = 1; i <= COMMANDS; i++) {
    const key = `${session}/${i}`;
    const times = 1 + (world.choose(4) === 0 ? 1 : 0);
    for (let time = 0; time < times; time++) {
      const turnId = yield* insist(world, { key, session });
      world.answers.set(key, (world.answers.get(key) ?? new Set()).add(turnId));
    }
    if (world.choose(5) === 0) yield* insist(world, { cancel: session });
  }
}

const isWorking = ({ store }: World): boolean => [...store.sessions.values()].some(({ state }) => state.open);

const runUntil = (world: World, over: () => boolean): void => {
  for (let steps = 0; !over(); steps++) {
    if (steps > MAX_STEPS) throw new Error('it never comes to rest');
    if (world.chaos && world.choose(100) < FAULTS_PERCENT) breakSomething(world);
    if (!world.step()) return;
  }
};

/** Two agents and a metering process, which die and stand still by choice, two clients, and then a quiet end. */
export const simulate = (choose: Choose, limits: BudgetLimits): World => {
  const world = createWorld(choose, limits);
  for (const name of ['agent-1', 'agent-2', 'metering']) boot(world, name, 1);
  const outside: Process = { name: 'clients', life: 1, alive: true, stillUntil: 0 };
  let left = SESSIONS.length;
  const client = function* (session: string): Fiber {
    yield* useSession(world, session);
    left--;
  };
  for (const session of SESSIONS) world.spawn(outside, client(session));
  runUntil(world, () => left === 0);
  world.chaos = false;
  for (const process of world.processes) process.stillUntil = 0;
  runUntil(world, () => !isWorking(world));
  let swept = false;
  const sweep = function* (): Fiber {
    yield* sweepReservations(world);
    swept = true;
  };
  world.spawn(outside, sweep());
  runUntil(world, () => swept);
  return world;
};
