import { useState, type ReactNode } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { identity } from '../../data/identity.js';
import { newKey } from '../../data/outbox.js';
import { navigate } from '../../data/router.js';
import type { Turn } from '../../data/transcript.js';
import { ProblemBox } from '../../ui/ui.js';
import { FilesDialog, type BranchFiles } from './files-dialog.js';
import { SpeakerDialog } from './speaker-dialog.js';
import type { FamilyChat } from './use-family.js';

/** A message that begins a branch in place of another one. */
export interface BranchRequest {
  readonly turn: Turn;
  /** Session that has the turn. */
  readonly sessionId: string;
  readonly content: string;
  readonly agent?: string;
}

/** Begins a branch. With `asks` the person chooses who answers. */
export type StartBranch = (request: BranchRequest, asks?: boolean) => void;

const CHANGES = 200;

/** Returns the files that a session has changed since the request of a turn. */
const changedSince = async ({ turn, sessionId }: BranchRequest): Promise<readonly string[]> => {
  const params = { id: identity.get().workspace };
  const { changes } = await client.http.readFileHistory({ params, query: { limit: CHANGES } });
  const own = changes.filter(
    ({ cause, eventPosition }) => cause.sessionId === sessionId && eventPosition > turn.firstPosition,
  );
  return [...new Set(own.map(({ path }) => path))];
};

/** Begins branches of a chat. It asks about the files if the chat has changed some since. */
export const useBranching = ({
  id: chatId,
  agentId,
}: Pick<FamilyChat, 'id' | 'agentId'>): { readonly start: StartBranch; readonly view: ReactNode } => {
  const { run, problem } = useAct();
  const [asked, setAsked] = useState<{ request: BranchRequest; paths: readonly string[] } | null>(null);
  const branch = async ({ turn, content, agent }: BranchRequest, files: BranchFiles): Promise<void> => {
    const params = { id: identity.get().workspace, chat: chatId };
    const body = { atMessage: turn.turnId, files, content, ...(agent === undefined ? {} : { agent }) };
    const made = await client.http.branchChat({ params, body, idempotencyKey: newKey() });
    setAsked(null);
    navigate(`/chats/${made.id}`);
  };
  const [choosing, setChoosing] = useState<BranchRequest | null>(null);
  const prepare = (request: BranchRequest): void =>
    run(async () => {
      const paths = await changedSince(request);
      if (paths.length === 0) await branch(request, 'shared');
      else setAsked({ request, paths });
    });
  const start: StartBranch = (request, asks = false) => (asks ? setChoosing(request) : prepare(request));
  const view = (
    <>
      {choosing && (
        <SpeakerDialog
          current={agentId}
          onClose={() => setChoosing(null)}
          onChoose={(agent) => {
            setChoosing(null);
            prepare({ ...choosing, agent });
          }}
        />
      )}
      {problem && <ProblemBox problem={problem} />}
      {asked && (
        <FilesDialog
          paths={asked.paths}
          onClose={() => setAsked(null)}
          onChoose={(files) => run(() => branch(asked.request, files))}
        />
      )}
    </>
  );
  return { start, view };
};
