import { asList, problem } from './problem.mjs';
import { selects, workloadsOf } from './workloads.mjs';

const NATS = 4222;
const POSTGRESQL = 5432;
const TEMPORAL = 7233;
const DNS = 53;
const WEB = 443;
/** Where a collector of traces listens (OTLP over HTTP). */
const OTLP = 4318;

/** Ports that a pod must reach, by its name. Except for the web, all others must be closed. */
const NEEDS = {
  gateway: [NATS, POSTGRESQL, DNS, OTLP],
  agent: [NATS, POSTGRESQL, TEMPORAL, DNS, WEB, OTLP],
  // Plug-ins reach their granted hosts through its one vetted client.
  sandbox: [NATS, POSTGRESQL, DNS, WEB, OTLP],
  metering: [NATS, POSTGRESQL, DNS, OTLP],
  memory: [NATS, POSTGRESQL, DNS, OTLP],
  'log-signer': [NATS, POSTGRESQL, DNS, OTLP],
  migrate: [POSTGRESQL, TEMPORAL, DNS],
  postgres: [DNS],
  nats: [DNS],
  temporal: [DNS],
};

const isDefaultDeny = ({ spec }) =>
  Object.keys(spec.podSelector ?? {}).length === 0 &&
  ['Ingress', 'Egress'].every((type) => asList(spec.policyTypes).includes(type)) &&
  spec.ingress === undefined &&
  spec.egress === undefined;

const portsOf = (rules) =>
  rules.flatMap((rule) => (rule.ports ? rule.ports.map(({ port }) => port) : ['any']));

const checkPod = (overlay, policies, { kind, name, labels }) => {
  const place = `${overlay}: ${kind} ${name}`;
  const own = policies.filter(({ spec }) => selects(spec.podSelector, labels));
  const wanted = NEEDS[name];
  if (wanted === undefined)
    return [problem(place, 'tools/deploy/validate/check-network.mjs does not list its ports')];
  const open = new Set(portsOf(own.flatMap(({ spec }) => asList(spec.egress))));
  return [
    ...wanted
      .filter((port) => !open.has(port))
      .map((port) => problem(place, `no network policy lets it out to port ${port}`)),
    ...[...open]
      .filter((port) => !wanted.includes(port))
      .map((port) => problem(place, `a network policy lets it out to port ${port}, which it has no use for`)),
  ];
};

/** Reports a selector that matches no pod, mostly because of a typo. */
const checkSelectors = (overlay, policies, workloads) =>
  policies.flatMap((policy) => {
    const place = `${overlay}: NetworkPolicy ${policy.metadata.name}`;
    const peers = [
      ...asList(policy.spec.egress).flatMap(({ to }) => asList(to)),
      { podSelector: policy.spec.podSelector },
    ].filter((peer) => peer.podSelector !== undefined && peer.namespaceSelector === undefined);
    return peers
      .filter(({ podSelector }) => !workloads.some(({ labels }) => selects(podSelector, labels)))
      .map(({ podSelector }) => problem(place, `${JSON.stringify(podSelector)} picks no pod`));
  });

const checkOpenRules = (overlay, policies) =>
  policies
    .filter(({ spec }) => asList(spec.ingress).some(({ from }) => from === undefined || from.length === 0))
    .map(({ metadata }) => problem(`${overlay}: NetworkPolicy ${metadata.name}`, 'allows every source'));

/** Checks for a default deny, exactly the needed ports of each pod, and a reachable gateway. */
export const checkNetwork = (overlay, documents) => {
  const policies = documents.filter(({ kind }) => kind === 'NetworkPolicy');
  const workloads = workloadsOf(documents);
  const gateway = workloads.find(({ name }) => name === 'gateway');
  const reached = policies.some(
    ({ spec }) =>
      gateway &&
      selects(spec.podSelector, gateway.labels) &&
      Object.keys(spec.podSelector ?? {}).length > 0 &&
      asList(spec.ingress).length > 0,
  );
  return [
    ...(policies.some(isDefaultDeny)
      ? []
      : [problem(overlay, 'there is no NetworkPolicy that denies all traffic')]),
    ...(reached ? [] : [problem(overlay, 'no network policy allows traffic to the gateway')]),
    ...workloads.flatMap((workload) => checkPod(overlay, policies, workload)),
    ...checkSelectors(overlay, policies, workloads),
    ...checkOpenRules(overlay, policies),
  ];
};
