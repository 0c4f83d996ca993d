import { useId, useState } from 'react';
import { useIdentity } from '../../data/identity.js';
import { Link, navigate } from '../../data/router.js';
import { ActButton } from '../../ui/act-button.js';
import { CopyRecord, quoteWord } from '../../ui/copy-record.js';
import { IconButton } from '../../ui/ui.js';
import { DeleteDialog, RenameDialog } from './chat-dialogs.js';
import type { PanelState } from './chat-panel.js';
import type { FamilyChat } from './use-family.js';
import css from './chats.module.css';

type ChatProps = { readonly chat: FamilyChat };

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
      {opened === 'delete' && <DeleteDialog chat={chat} onClose={close} onDone={() => navigate('/chats')} />}
    </>
  );
};
