import { useState, type FormEvent } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { identity } from '../../data/identity.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';

interface DialogProps {
  readonly chat: { readonly id: string; readonly name: string };
  readonly onClose: () => void;
}

/** Asks for another name of a chat. */
export const RenameDialog = ({ chat, onClose }: DialogProps) => {
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

/** Asks before a chat is deleted. */
export const DeleteDialog = ({
  chat,
  onClose,
  onDone,
}: DialogProps & { /** Called once the chat is deleted. */ readonly onDone: () => void }) => (
  <ConfirmDialog
    title="Delete the chat?"
    action="Delete"
    permission="sessions:write"
    onConfirm={() => client.http.deleteChat({ params: { id: identity.get().workspace, chat: chat.id } })}
    onClose={(isDone) => {
      onClose();
      if (isDone) onDone();
    }}
  >
    <p>
      “{chat.name}” leaves the list, and its open messages are cancelled. What was said stays in its session.
    </p>
  </ConfirmDialog>
);
