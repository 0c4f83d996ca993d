import { useEffect, useRef, useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { useAct } from '../../data/act.js';
import { offeredText, readDraft, writeDraft, type Draft } from '../../data/drafts.js';
import { newKey } from '../../data/outbox.js';
import { navigate, useParam } from '../../data/router.js';
import { useStore } from '../../data/store.js';
import { ProblemBox } from '../../ui/ui.js';
import { ChatComposer, type ComposerHandle } from './chat-composer.js';
import { RolePicker, speakerOf } from './role-picker.js';
import { startChat } from './start-chat.js';
import css from './chats.module.css';

const NEW = 'new';

interface Attempt {
  readonly text: string;
  readonly key: string;
}

/** Begins a chat by its first message. `?agent=` chooses who answers. */
export const NewChat = () => {
  const asked = useParam('agent');
  const [value, setValue] = useState(asked === '' ? '' : `agent ${asked}`);
  const { run, isBusy, problem } = useAct();
  const composer = useRef<ComposerHandle | null>(null);
  const last = useRef<Attempt | null>(null);
  const offered = useStore(offeredText);
  useEffect(() => {
    const text = offeredText.get();
    if (text === '') return;
    offeredText.set('');
    composer.current?.give({ text, files: [] });
  }, [offered]);
  const start = async (draft: Draft): Promise<void> => {
    // The same text again is a repeat of the same request.
    const text = JSON.stringify([draft, value]);
    const { key } = (last.current = last.current?.text === text ? last.current : { text, key: newKey() });
    try {
      const chat = await startChat(draft, speakerOf(value), key);
      navigate(`/chats/${chat}`, { replace: true });
    } catch (error) {
      if (composer.current) composer.current.give(draft);
      else writeDraft(NEW, { text: draft.text + readDraft(NEW).text, files: draft.files });
      throw error;
    }
  };
  return (
    <section className={css.chat} aria-label="New chat">
      <PageHead title="New chat" tabTitle="New chat · Chats" question="What do you want done?" />
      <p className={css.welcome}>
        Write what you want, and attach the files that it is about. Drop them anywhere on the page.
      </p>
      <div className={css.write}>
        {problem && <ProblemBox problem={problem} />}
        <ChatComposer chat={NEW} handle={composer} isOff={isBusy} onSend={(draft) => run(() => start(draft))}>
          <RolePicker value={value} onChange={setValue} />
        </ChatComposer>
      </div>
    </section>
  );
};
