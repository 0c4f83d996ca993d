import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { isAbout } from '../../data/event-pages.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { useCheckedForm } from '../../ui/field-errors.js';
import {
  Button,
  CopyButton,
  css as ui,
  Dialog,
  Empty,
  Field,
  Loading,
  Panel,
  ProblemBox,
  State,
  Table,
  Time,
} from '../../ui/ui.js';
import css from '../pages.module.css';

type Key = RouteReply<'listKeys'>['keys'][number];
const ROLES = ['viewer', 'member', 'operator', 'admin'] as const;

const CreateDialog = ({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: (key: string) => void;
}) => {
  const { run, isBusy, problem } = useAct();
  const create = async (form: FormData): Promise<void> => {
    const role = ROLES.find((each) => each === form.get('role')) ?? 'viewer';
    const name = String(form.get('name')).trim();
    const made = await client.http.createKey({ body: { name, role } });
    onMade(made.token ?? 'The key was made before: its secret is not shown again.');
  };
  const { errors, props: form } = useCheckedForm((given) => run(() => create(given)));
  return (
    <Dialog title="Create an API key" onClose={onClose}>
      <form {...form} style={{ display: 'contents' }}>
        {problem && <ProblemBox problem={problem} />}
        <Field label="Name" error={errors['name']}>
          {(props) => (
            <input {...props} name="name" required pattern=".*\S.*" maxLength={100} autoComplete="off" />
          )}
        </Field>
        <Field label="Role" hint="A key cannot have more rights than you.">
          {(props) => (
            <select {...props} name="role" defaultValue="member">
              {ROLES.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          )}
        </Field>
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Close</Button>
          <ActButton permission="keys:manage" type="submit" look="primary" isOff={isBusy}>
            Create
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};

const SecretDialog = ({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) => (
  <Dialog title="The key, shown once" onClose={onClose}>
    <p>Copy it now. The gateway keeps only its hash.</p>
    <code className={ui.code}>{secret}</code>
    <div className={ui.dialogFoot}>
      <CopyButton text={secret} label="Copy the key" />
      <Button look="primary" onClick={onClose}>
        Done
      </Button>
    </div>
  </Dialog>
);

const Row = ({ apiKey, ask }: { readonly apiKey: Key; readonly ask: () => void }) => (
  <tr>
    <td>
      <span className={css.name}>{apiKey.name}</span>
      <div className={ui.mono}>{apiKey.id}</div>
    </td>
    <td>{apiKey.role}</td>
    <td>
      <State of={apiKey.status} />
    </td>
    <td>
      <Time at={apiKey.createdAt} />
    </td>
    <td>{apiKey.expiresAt ? <Time at={apiKey.expiresAt} /> : <span className={ui.muted}>never</span>}</td>
    <td data-end="">
      {apiKey.status === 'active' && (
        <ActButton permission="keys:manage" look="danger" onClick={ask}>
          Revoke
        </ActButton>
      )}
    </td>
  </tr>
);

const NoKey = () => (
  <Empty title="No API key in this workspace">
    <p>Create one for each program or person that uses the API.</p>
  </Empty>
);

interface KeysProps {
  readonly secret: string | null;
  readonly showSecret: (secret: string | null) => void;
}

/** API keys of the workspace. */
export const Keys = ({ secret, showSecret }: KeysProps) => {
  const { data, problem, refresh } = useRead(
    'listKeys',
    { query: { limit: 200 } },
    { hasPast: false, changesOn: isAbout('key', 'workspace') },
  );
  const [isCreating, setCreating] = useState(false);
  const [revoked, setRevoked] = useState<Key | null>(null);
  const made = (key: string): void => {
    setCreating(false);
    showSecret(key);
    refresh();
  };
  return (
    <Panel
      title="API keys"
      actions={
        <>
          <CopyRecord
            {...{ noun: 'keys', json: '/keys?limit=200', command: 'antiphon key list' }}
            isOfPosition={false}
          />
          <ActButton permission="keys:manage" icon="plus" onClick={() => setCreating(true)}>
            Create a key
          </ActButton>
        </>
      }
    >
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="keys" />}
      {data?.keys.length === 0 && <NoKey />}
      {data && data.keys.length > 0 && (
        <Table
          label="API keys"
          columns={['Key', 'Role', 'State', 'Created', 'Expires', { name: 'Actions', isNumber: true }]}
        >
          {data.keys.map((key) => (
            <Row key={key.id} apiKey={key} ask={() => setRevoked(key)} />
          ))}
        </Table>
      )}
      {isCreating && <CreateDialog onClose={() => setCreating(false)} onMade={made} />}
      {secret !== null && <SecretDialog secret={secret} onClose={() => showSecret(null)} />}
      {revoked && (
        <ConfirmDialog
          title={`Revoke ${revoked.name}?`}
          action="Revoke"
          permission="keys:manage"
          onConfirm={() => client.http.revokeKey({ params: { id: revoked.id } })}
          onClose={(isDone) => {
            setRevoked(null);
            if (isDone) refresh();
          }}
        >
          <p>Every gateway refuses it within a second and closes its connections. It cannot be taken back.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
};
