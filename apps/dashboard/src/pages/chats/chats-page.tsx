import { lazy, Suspense, useEffect } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { resumeOutboxes } from '../../data/outbox.js';
import { useIdentity } from '../../data/identity.js';
import { Link } from '../../data/router.js';
import { Empty, Loading } from '../../ui/ui.js';
import { ChatList } from './chat-list.js';
import { NewChat } from './new-chat.js';
import css from './chats.module.css';

const ChatPage = lazy(async () => ({ default: (await import('./chat-page.js')).ChatPage }));

/** Stands next to the list where no chat is open. */
const NoChat = () => (
  <section className={css.chat} aria-label="No chat">
    <PageHead title="Chats" question="What do I want done, with which role and files?" />
    <Empty title="No chat is open">
      <p>Choose a chat of the list, or begin another one.</p>
      <Link to="/chats/new">New chat</Link>
    </Empty>
  </section>
);

/** Chats: the list, and the chat of the address. */
export const ChatsPage = ({ params }: PageProps) => {
  const chat = params['chat'] ?? null;
  // Drafts and reads belong to the caller and the workspace.
  const isKnown = useIdentity().permissions !== null;
  useEffect(() => {
    if (isKnown) resumeOutboxes();
  }, [isKnown]);
  if (!isKnown) return <Loading what="chats" />;
  return (
    <div className={css.layout} data-open={chat === null ? undefined : ''}>
      <ChatList current={chat} />
      {chat === null && <NoChat />}
      {chat === 'new' && <NewChat />}
      {chat !== null && chat !== 'new' && (
        <Suspense fallback={<Loading what="the chat" />}>
          <ChatPage key={chat} id={chat} />
        </Suspense>
      )}
    </div>
  );
};
