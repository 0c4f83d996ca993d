import { useId, useState, type FormEvent } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { identity, useIdentity } from '../../data/identity.js';
import { Link, navigate } from '../../data/router.js';
import { ActButton } from '../../ui/act-button.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { CopyRecord, quoteWord } from '../../ui/copy-record.js';
import { Button, css as ui, Dialog, Field, IconButton, ProblemBox } from '../../ui/ui.js';
import type { PanelState } from './chat-panel.js';
import type { FamilyChat } from './use-family.js';
import css from './chats.module.css';

type ChatProps = { readonly chat: FamilyChat };

const RenameDialog = ({ chat, onClose }: ChatProps & { readonly onClose: () => void }) => {
  const [name, setName] = useState(chat.name);
  const { run, isBusy, problem } = useAct();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const params = { id: identity.get().workspace, chat: chat.id };
    run(() => client.http.renameChat({ params, body: { name: name.trim() } }).then(onClose));
  };
  return (
    <Dialog title="Rename the chat" onClose={onClose}>
      <form onSubmit={submit} style={{ display: 'contents' }}>
        {problem && <ProblemBox problem={problem} />}
        <Field label="Name" hint="The files list it as this name and `.chat`.">
          {(props) => (
            <input
              {...props}
              maxLength={100}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={isBusy || name.trim() === ''}>
            Rename
          </Button>
        </div>
      </form>
    </Dialog>
  );
};

const DeleteDialog = ({ chat, onClose }: ChatProps & { readonly onClose: () => void }) => (
  <ConfirmDialog
    title="Delete the chat?"
    action="Delete"
    permission="sessions:write"
    onConfirm={() => client.http.deleteChat({ params: { id: identity.get().workspace, chat: chat.id } })}
    onClose={(isDone) => {
      onClose();
      if (isDone) navigate('/chats');
    }}
  >
    <p>
      “{chat.name}” leaves the list, and its open messages are cancelled. What was said stays in its session.
    </p>
  </ConfirmDialog>
);

/** Actions of a chat as a whole. */
export const ChatMenu = ({ chat, panel }: ChatProps & { readonly panel: PanelState }) => {
  const [opened, setOpened] = useState<'rename' | 'delete' | null>(null);
  const { workspace } = useIdentity();
  const id = useId();
  const path = `/workspaces/${encodeURIComponent(workspace)}/chats/${chat.id}?format=json`;
  const close = (): void => setOpened(null);
  return (
    <>
      <Link to={`/sessions/${chat.sessionId}`}>Session</Link>
      <IconButton icon="menu" label="Actions of the chat" popoverTarget={id} />
      <div id={id} popover="auto" role="group" aria-label="Actions of the chat" className={css.menu}>
        <CopyRecord
          noun="chat"
          page={`/chats/${chat.id}`}
          json={path}
          command={`antiphon session show ${quoteWord(chat.sessionId)}`}
        />
        <ActButton permission="sessions:write" icon="pencil" onClick={() => setOpened('rename')}>
          Rename
        </ActButton>
        <ActButton permission="sessions:write" icon="trash" onClick={() => setOpened('delete')}>
          Delete
        </ActButton>
      </div>
      <IconButton
        icon="layout"
        label={panel.isOpen ? 'Close the side panel' : 'Open the side panel'}
        aria-expanded={panel.isOpen}
        onClick={panel.toggle}
      />
      {opened === 'rename' && <RenameDialog chat={chat} onClose={close} />}
      {opened === 'delete' && <DeleteDialog chat={chat} onClose={close} />}
    </>
  );
};
