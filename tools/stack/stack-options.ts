import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { UserError } from '@antiphon/bootstrap/user-error';

/** Number of processes per service. */
export type Scale = Readonly<Record<ServiceName, number>>;

export interface StackArguments {
  readonly detach: boolean;
  /** True for memory and metering in the process of the agent. */
  readonly isHosting: boolean;
  readonly scale: Partial<Scale>;
  /** Lines for a person about arguments that have no effect. */
  readonly notes: readonly string[];
}

const SEPARATE_NOTE = '--separate has no effect: each service has a process of its own by default';

const MAX_PROCESSES = 16;
const USAGE = 'usage: npm start -- [--detach] [--compact] [--scale gateway=3,agent=2]';

const refuse = (message: string): never => {
  throw new UserError(`${message}\n${USAGE}`, { exitCode: 2 });
};

const isService = (name: string): name is ServiceName => (SERVICES as readonly string[]).includes(name);

const parsePart = (part: string): readonly [ServiceName, number] => {
  const [name = '', count = ''] = part.split('=');
  if (!isService(name))
    return refuse(`--scale: there is no service "${name}" (there are ${SERVICES.join(', ')})`);
  const value = Number(count);
  if (!/^\d+$/.test(count) || value < 1 || value > MAX_PROCESSES)
    return refuse(`--scale: ${name} needs a number from 1 to ${MAX_PROCESSES}, not "${count}"`);
  return [name, value];
};

/** Parses `gateway=3,agent=2`. Throws a UserError with exit code 2. */
export const parseScale = (text: string): Partial<Scale> =>
  Object.fromEntries(text.split(',').map(parsePart));

/** Fills in one process for each service that is not named. */
export const fullScale = (scale: Partial<Scale>): Scale =>
  Object.fromEntries(SERVICES.map((name) => [name, scale[name] ?? 1])) as Record<ServiceName, number>;

/** Parses the arguments of `npm start -- …`. */
export const parseArguments = (args: readonly string[]): StackArguments => {
  let detach = false;
  let isHosting = false;
  const notes: string[] = [];
  let scale: Partial<Scale> = {};
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? '';
    if (arg === '--detach' || arg === '-d') detach = true;
    else if (arg === '--compact') isHosting = true;
    else if (arg === '--separate') notes.push(SEPARATE_NOTE);
    else if (arg === '--scale') scale = parseScale(args[++i] ?? '');
    else if (arg.startsWith('--scale=')) scale = parseScale(arg.slice('--scale='.length));
    else refuse(`unknown argument "${arg}"`);
  }
  if (isHosting && (notes.length > 0 || scale.memory !== undefined || scale.metering !== undefined))
    refuse(
      '--compact runs memory and metering in the process of the agent: leave out --separate and their --scale',
    );
  return { detach, scale, isHosting, notes };
};
