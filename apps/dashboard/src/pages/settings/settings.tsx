import { useState, type ReactNode } from 'react';
import { PageHead } from '../../app/page-head.js';
import { canNotify, notifies, setNotifies } from '../../app/attention/notifications.js';
import { hasSingleKeys, setSingleKeys } from '../../app/keys.js';
import { signOut } from '../../app/sign-in.js';
import { setTheme, theme, THEMES } from '../../app/theme.js';
import { useAct } from '../../data/act.js';
import { useIdentity } from '../../data/identity.js';
import { Link } from '../../data/router.js';
import { useStore } from '../../data/store.js';
import { useRead } from '../../data/use-read.js';
import { Button, css as ui, Empty, Loading, Panel, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import { PresentMark } from '../../ui/present-mark.js';
import { setShowsWhole, showsWhole } from '../../ui/whole-values.js';
import { setSpeaksAnswers, speaksAnswers } from '../../ui/spoken-answers.js';
import { EffectiveConfig } from './config-panel.js';
import { Keys } from './keys-panel.js';
import css from '../pages.module.css';

const Identity = () => {
  const { workspace, role, caller, permissions, signedInBy } = useIdentity();
  const act = useAct();
  return (
    <>
      {act.problem && <ProblemBox problem={act.problem} />}
      <dl className={ui.facts}>
        <dt>Workspace</dt>
        <dd>{workspace}</dd>
        <dt>Role</dt>
        <dd>{role}</dd>
        <dt>Name in the log</dt>
        <dd className={ui.mono}>{caller}</dd>
        <dt>Permissions</dt>
        <dd className={css.tags}>
          {permissions?.map((name) => (
            <span key={name} className={css.tag}>
              {name}
            </span>
          ))}
        </dd>
      </dl>
      {signedInBy === 'session' && (
        <p>
          <Button icon="key" onClick={() => act.run(signOut)}>
            Sign out
          </Button>
        </p>
      )}
    </>
  );
};

interface CheckProps {
  readonly isOn: boolean;
  readonly set: (isOn: boolean) => void;
  readonly children: ReactNode;
}

const Check = ({ isOn, set, children }: CheckProps) => (
  <label className={css.check}>
    <input type="checkbox" checked={isOn} onChange={(event) => set(event.target.checked)} />
    <span>{children}</span>
  </label>
);

const Preferences = () => {
  const current = useStore(theme);
  const isNotified = useStore(notifies) === 'on';
  return (
    <div className={css.stack}>
      <Check isOn={useStore(hasSingleKeys)} set={setSingleKeys}>
        Keys without Ctrl, such as <kbd>?</kbd> and <kbd>g</kbd> <kbd>e</kbd>
      </Check>
      <Check isOn={useStore(showsWhole)} set={setShowsWhole}>
        Exact times and whole ids in lists
      </Check>
      <Check isOn={useStore(speaksAnswers)} set={setSpeaksAnswers}>
        Announce answers to screen readers while they arrive, in whole sentences
      </Check>
      {canNotify() && (
        <Check isOn={isNotified} set={(isOn) => void setNotifies(isOn)}>
          Notify me while this tab is hidden, without saying what has happened
        </Check>
      )}
      <fieldset className={css.choices}>
        <legend>Theme</legend>
        {THEMES.map((name) => (
          <label key={name} className={css.check}>
            <input type="radio" name="theme" checked={current === name} onChange={() => setTheme(name)} />
            <span>{name === 'auto' ? 'as the system' : name}</span>
          </label>
        ))}
      </fieldset>
    </div>
  );
};

const Workspaces = () => {
  const { data, problem, refresh } = useRead('listWorkspaces', { query: { limit: 200 } }, { hasPast: false });
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="workspaces" />;
  return (
    <Table label="Workspaces" columns={['Id', 'Name', 'Created']}>
      {data.workspaces.map(({ id, name, createdAt }) => (
        <tr key={id}>
          <td className={css.name}>{id}</td>
          <td>{name}</td>
          <td>
            <Time at={createdAt} />
          </td>
        </tr>
      ))}
    </Table>
  );
};

const Providers = () => {
  const { data, problem, refresh } = useRead('listProviders', {}, { hasPast: false });
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="providers" />;
  return (
    <Table label="Providers" columns={['Provider', 'Kind', 'Key', 'State']}>
      {data.providers.map(({ name, kind, ready, scripted, key, keyVariable }) => (
        <tr key={name}>
          <td className={css.name}>{name}</td>
          <td>{scripted ? `${kind}: offline, no real model` : kind}</td>
          <td className={ui.mono}>{key === 'variable' ? keyVariable : key}</td>
          <td>{ready ? <State of="ready" tone="ok" /> : <State of="down">no key</State>}</td>
        </tr>
      ))}
    </Table>
  );
};

const Plugins = () => {
  const { data, problem, refresh } = useRead('listPlugins', {}, { hasPast: false });
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="plug-ins" />;
  if (data.plugins.length === 0)
    return (
      <Empty title="No plug-in is configured">
        <p>Add a table [[plugins]] to the configuration, and start again.</p>
      </Empty>
    );
  return (
    <Table label="Plug-ins" columns={['Plug-in', 'State', 'Capabilities', 'Tools']}>
      {data.plugins.map(({ name, kind, status, reason, capabilities, tools }) => (
        <tr key={name}>
          <td className={css.name}>
            {name} ({kind})
          </td>
          <td>
            <State of={status === 'loaded' ? 'ok' : 'failed'}>{status}</State>
            {reason !== null && <p>{reason}</p>}
          </td>
          <td>{capabilities.join(', ') || 'none'}</td>
          <td className={ui.mono}>{tools.join(', ') || 'none'}</td>
        </tr>
      ))}
    </Table>
  );
};

interface AllowedProps {
  readonly permission: string;
  readonly title: string;
  readonly children: ReactNode;
}

/** Reads a part only for a caller who may, so that no refused request is made. */
const Allowed = ({ permission, title, children }: AllowedProps) => {
  const { permissions, role } = useIdentity();
  if (permissions?.includes(permission)) return children;
  return (
    <Panel title={title} className={css.half}>
      {permissions === null ? (
        <Loading what="your permissions" />
      ) : (
        <Empty title={`Your role ${role} lacks ${permission}`}>
          <p>Sign in with a key of another role to see this part.</p>
        </Empty>
      )}
    </Panel>
  );
};

export const Settings = () => {
  const [shownSecret, showSecret] = useState<string | null>(null);
  return (
    <>
      <PageHead
        title="Settings"
        question="Who may do what, with which keys, providers and plug-ins?"
        actions={<PresentMark />}
      />
      <div className={css.grid}>
        <Panel title="You" isPadded className={css.half}>
          <Identity />
        </Panel>
        <Panel title="This browser" isPadded className={css.half}>
          <Preferences />
        </Panel>
        <Allowed permission="keys:manage" title="API keys">
          <Keys secret={shownSecret} showSecret={showSecret} />
        </Allowed>
        <Allowed permission="agents:read" title="Providers">
          <Panel
            title="Providers"
            className={css.half}
            actions={<Link to="/settings/providers">Connect and change</Link>}
          >
            <Providers />
          </Panel>
        </Allowed>
        <Allowed permission="plugins:read" title="Plug-ins">
          <Panel title="Plug-ins" className={css.half} actions={<Link to="/tools">All tools</Link>}>
            <Plugins />
          </Panel>
        </Allowed>
        <Allowed permission="workspaces:manage" title="Workspaces">
          <Panel title="Workspaces">
            <Workspaces />
          </Panel>
        </Allowed>
        <Allowed permission="operations:write" title="Effective configuration">
          <Panel title="Effective configuration">
            <EffectiveConfig />
          </Panel>
        </Allowed>
      </div>
    </>
  );
};
