import { useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { isAbout } from '../../data/event-pages.js';
import { setParams, useParam } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { PresentMark } from '../../ui/present-mark.js';
import { formatUsd } from '../../ui/format.js';
import { css as ui, Loading, Panel, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import { ConnectDialog } from './connect-dialog.js';
import { describeTest } from './provider-kinds.js';
import type { Provider, ProviderTest } from './provider-kinds.js';
import css from '../pages.module.css';

const KEYS: Readonly<Record<Provider['key'], string>> = {
  stored: 'stored encrypted',
  variable: 'of a variable',
  none: 'none',
};

const ProviderState = ({ provider: { ready, scripted, paused } }: { readonly provider: Provider }) => {
  if (paused)
    return (
      <State of="paused">
        paused until <Time at={paused.until} />
      </State>
    );
  if (scripted) return <State of="info">offline, no real model</State>;
  return ready ? <State of="ready" tone="ok" /> : <State of="down">no key</State>;
};

const RemoveDialog = ({
  provider: { name },
  users,
  onClose,
}: {
  readonly provider: Provider;
  readonly users: readonly string[];
  readonly onClose: () => void;
}) => (
  <ConfirmDialog
    title={`Remove ${name}?`}
    action="Remove"
    permission="credentials:manage"
    onConfirm={() => client.http.removeProvider({ params: { name } })}
    onClose={onClose}
  >
    <p>Its key is deleted, and calls to it fail from now on.</p>
    <p>{users.length === 0 ? 'No agent uses it.' : `Agents that lose it: ${users.join(', ')}.`}</p>
  </ConfirmDialog>
);

const Users = ({ users }: Pick<RowProps, 'users'>) =>
  users.length === 0 ? (
    <span className={ui.muted}>none</span>
  ) : (
    users.map(([id, model]) => (
      <div key={id}>
        {id} <span className={ui.mono}>{model}</span>
      </div>
    ))
  );

interface RowProps {
  readonly provider: Provider;
  /** Its agents, each with its model. */
  readonly users: readonly (readonly [id: string, model: string])[];
  /** Cost of its calls until now; null while it is read. */
  readonly cost: number | null;
  readonly onChange: () => void;
  readonly onRemove: () => void;
}

const Row = ({ provider, users, cost, onChange, onRemove }: RowProps) => {
  const { name, kind, baseUrl, key, keyVariable, origin, connectedAt, connectedBy, scripted } = provider;
  const { run, isBusy, problem } = useAct();
  const [test, setTest] = useState<ProviderTest | null>(null);
  const look = async (): Promise<void> => setTest(await client.http.listProviderModels({ params: { name } }));
  return (
    <tr>
      <td>
        <span className={css.name}>{name}</span>
        <div className={ui.muted}>{kind}</div>
        {baseUrl && <div className={ui.mono}>{baseUrl}</div>}
      </td>
      <td>
        {KEYS[key]}
        {key !== 'stored' && keyVariable && <div className={ui.mono}>{keyVariable}</div>}
      </td>
      <td>
        {origin === 'configuration' ? 'configuration' : `connected by ${connectedBy}`}
        {connectedAt && (
          <div className={ui.muted}>
            <Time at={connectedAt} />
          </div>
        )}
      </td>
      <td>
        <Users users={users} />
      </td>
      <td>{cost === null ? <span className={ui.muted}>…</span> : formatUsd(cost)}</td>
      <td>
        <ProviderState provider={provider} />
        {problem && <ProblemBox problem={problem} />}
        {test && (
          <div role="status">
            {describeTest(test).line} {describeTest(test).fix}
          </div>
        )}
      </td>
      <td>
        <div className={css.links}>
          {!scripted && (
            <ActButton permission="agents:read" isOff={isBusy} onClick={() => run(look)}>
              Test
            </ActButton>
          )}
          {origin === 'connected' && (
            <>
              <ActButton permission="credentials:manage" onClick={onChange}>
                Change
              </ActButton>
              <ActButton permission="credentials:manage" look="danger" onClick={onRemove}>
                Remove
              </ActButton>
            </>
          )}
        </div>
      </td>
    </tr>
  );
};

const Head = () => (
  <PageHead
    title="Providers"
    question="Which models can agents call, and with whose key?"
    actions={
      <>
        <PresentMark />
        <CopyRecord noun="list" json="/providers" command="antiphon provider list" />
        <ActButton
          permission="credentials:manage"
          look="primary"
          icon="plus"
          onClick={() => setParams({ connect: '1' })}
        >
          Connect a model
        </ActButton>
      </>
    }
  />
);

/** The providers that agents can call, with the way to connect one. */
export const ProviderList = () => {
  const isConnecting = useParam('connect') === '1';
  const [changed, change] = useState<Provider | null>(null);
  const [removed, remove] = useState<Provider | null>(null);
  const list = useRead('listProviders', {}, { changesOn: isAbout('provider'), hasPast: false });
  const agents = useRead('listAgents', {}, { changesOn: isAbout('agent'), hasPast: false });
  const { data, problem, refresh } = list;
  // Read once: the page of money follows the log.
  const usage = useRead('readUsage', { query: { by: 'model' } }, { hasPast: false });
  const usersOf = (name: string): (readonly [string, string])[] =>
    (agents.data?.agents ?? [])
      .filter(({ provider, state }) => provider === name && state !== 'terminated')
      .map(({ id, model }) => [id, model] as const);
  const costOf = (provider: string): number | null =>
    usage.data?.groups
      ?.filter(({ name }) => name.startsWith(`${provider}/`))
      .reduce((sum, { settledMicroUsd }) => sum + settledMicroUsd, 0) ?? null;
  const close = (): void => {
    change(null);
    remove(null);
    if (isConnecting) setParams({ connect: null });
    refresh();
  };
  const taken = (data?.providers ?? []).map(({ name }) => name);
  return (
    <>
      <Head />
      <Panel title="Providers">
        {problem && <ProblemBox problem={problem} retry={refresh} />}
        {!data && !problem && <Loading what="providers" />}
        {data && (
          <Table
            label="Providers"
            columns={['Provider', 'Key', 'Origin', 'Agents', 'Cost so far', 'State', 'Actions']}
          >
            {data.providers.map((provider) => (
              <Row
                key={provider.name}
                provider={provider}
                users={usersOf(provider.name)}
                cost={costOf(provider.name)}
                onChange={() => change(provider)}
                onRemove={() => remove(provider)}
              />
            ))}
          </Table>
        )}
      </Panel>
      {(isConnecting || changed) && <ConnectDialog known={changed} taken={taken} onClose={close} />}
      {removed && (
        <RemoveDialog provider={removed} users={usersOf(removed.name).map(([id]) => id)} onClose={close} />
      )}
    </>
  );
};
