import { spawnSync } from 'node:child_process';
import { SERVICES, composeVariables, makeSecrets } from '../secrets/secrets.mjs';
import { asList, namesVersion, problem } from './problem.mjs';

const FILE = 'docker-compose.yml';
const ENGINES = ['postgres', 'nats', 'temporal'];
const PUBLISHED = ['gateway', 'temporal-ui'];
/** Engines that each container talks to. It shares a network with these and with no other one. */
const REACHES = {
  gateway: ['postgres', 'nats', 'cli'],
  agent: ['postgres', 'nats', 'temporal'],
  sandbox: ['postgres', 'nats'],
  metering: ['postgres', 'nats'],
  memory: ['postgres', 'nats'],
  migrate: ['postgres', 'temporal'],
  cli: ['postgres', 'gateway'],
  'temporal-ui': ['temporal'],
};
/** Containers that reach hosts outside, or are reached from there. */
const OUTSIDE = ['gateway', 'agent', 'sandbox', 'temporal-ui'];

/**
 * Returns true for a service that runs to its end, for which others wait; it has no health check.
 */
const isJob = (name, services) =>
  Object.values(services).some(
    ({ depends_on: needs }) => needs?.[name]?.condition === 'service_completed_successfully',
  );

/** Returns true for a service that an operator starts by hand. */
const isTool = ({ profiles }) => asList(profiles).length > 0;

const networksOf = ({ networks }) => Object.keys(networks ?? {});

/** Returns the other containers that share a network with one. */
const neighboursOf = (name, all) =>
  Object.entries(all)
    .filter(
      ([other, service]) =>
        other !== name && networksOf(service).some((network) => networksOf(all[name]).includes(network)),
    )
    .map(([other]) => other)
    .sort();

const isHealthChecked = ({ healthcheck }) =>
  healthcheck !== undefined &&
  !healthcheck.disable &&
  asList(healthcheck.test).length > 0 &&
  healthcheck.test[0] !== 'NONE';

const isOurs = ({ build }) => build?.dockerfile?.endsWith('deploy/Dockerfile') ?? false;

/** Rules that return a problem of a service, or a falsy value. */
const RULES = [
  (service, name, all) =>
    !isJob(name, all) && !isTool(service) && !isHealthChecked(service) && 'has no health check',
  ({ privileged }) => privileged && 'is privileged',
  ({ cap_drop: dropped }) => !asList(dropped).includes('ALL') && 'does not drop all capabilities',
  ({ security_opt: options }) =>
    !asList(options).some((option) => option.startsWith('no-new-privileges')) && 'may gain new privileges',
  ({ network_mode: mode, pid, ipc }) =>
    [mode, pid, ipc].includes('host') && 'shares a namespace with its host',
  (service) => isOurs(service) && service.read_only !== true && 'can write to its root file system',
  (service) =>
    isOurs(service) &&
    !/^[1-9]\d*:[1-9]\d*$/.test(service.user ?? '') &&
    'runs as root, or as a user by name',
  (service, name) =>
    SERVICES.includes(name) &&
    service.deploy?.resources?.limits?.memory === undefined &&
    'has no memory limit',
  ({ image }) => !/:[^/:]+$/.test(image ?? '') && `image ${image} has no tag`,
  ({ image }) => !namesVersion(image ?? '') && `image ${image} can be another one tomorrow`,
  (_service, name, all) => {
    const wanted = REACHES[name] && [...REACHES[name]].sort().join(', ');
    const actual = neighboursOf(name, all).join(', ');
    return wanted !== undefined && actual !== wanted && `reaches ${actual}, and needs ${wanted}`;
  },
  ({ ports }, name) =>
    asList(ports).length > 0 &&
    !PUBLISHED.includes(name) &&
    'publishes a port, which only the gateway and Temporal’s UI do',
  ({ ports }) =>
    asList(ports).some(({ host_ip: address }) => address !== '127.0.0.1') &&
    'publishes a port beyond loopback',
  ({ depends_on: needs = {} }, _name, all) => {
    const early = Object.entries(needs).find(
      ([name, { condition }]) => all[name] !== undefined && condition === 'service_started',
    );
    return early && `does not wait until ${early[0]} is healthy`;
  },
  ({ volumes }, name) =>
    ENGINES.includes(name) &&
    !asList(volumes).some(({ type }) => type === 'volume') &&
    'stores its data in no volume',
];

/** Every network of two containers is internal; every other one belongs to one container. */
const checkNetworks = ({ services = {}, networks = {} }) =>
  Object.entries(networks).flatMap(([network, { internal }]) => {
    const members = Object.keys(services).filter((name) => networksOf(services[name]).includes(network));
    const isPair = members.length === 2 && internal === true;
    const isOutside = members.length === 1 && !internal && OUTSIDE.includes(members[0]);
    if (isPair || isOutside) return [];
    return [
      problem(
        `${FILE}: network ${network}`,
        `joins ${members.join(', ')}${internal ? '' : ' and is not internal'}`,
      ),
    ];
  });

const checkModel = ({ services = {} }) => [
  ...[...SERVICES, ...ENGINES, 'migrate']
    .filter((name) => services[name] === undefined)
    .map((name) => problem(FILE, `there is no service ${name}`)),
  ...Object.entries(services).flatMap(([name, service]) =>
    RULES.map((rule) => rule(service, name, services))
      .filter(Boolean)
      .map((message) => problem(`${FILE}: service ${name}`, message)),
  ),
];

/** Validates docker-compose.yml as Compose does, then by the project's own rules. */
export const checkCompose = (composeCheck, root) => {
  const env = { PATH: process.env.PATH, ...composeVariables(makeSecrets(() => 'only-for-validation')) };
  const run = spawnSync(composeCheck, [FILE], { cwd: root, encoding: 'utf8', env });
  if (run.error !== undefined) throw run.error;
  const said = run.stderr.trim();
  if (run.status !== 0) return [problem(FILE, said)];
  const model = JSON.parse(run.stdout);
  return [...(said === '' ? [] : [problem(FILE, said)]), ...checkModel(model), ...checkNetworks(model)];
};
