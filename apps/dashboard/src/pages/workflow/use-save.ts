import { useEffect, useState } from 'react';
import { navigate } from '../../data/router.js';
import { client } from '../../data/gateway.js';
import { toProblem, type Problem } from '../../data/use-read.js';
import type { Definition, Workflow } from './definition.js';
import { isChanged } from './editor-store.js';
import { keepPlaces, type EditorModel } from './use-editor.js';

export interface Saving {
  readonly isBusy: boolean;
  readonly problem: Problem | null;
  /** Version that was saved while this one was edited; null without a conflict. */
  readonly theirs: Workflow | null;
  /** Version on which the next save is based; null for a new workflow. */
  readonly base: number | null;
  readonly save: (how?: { asNew?: boolean; over?: number; draft?: boolean }) => Promise<Workflow | null>;
  readonly takeTheirs: () => void;
  readonly closeConflict: () => void;
}

const isConflict = (problem: Problem): boolean => problem.code === 'WORKFLOW.VERSION_CONFLICT';

/** Saves on top of a version, or a new workflow without one. */
const write = (id: string, definition: Definition, draft: boolean, version: number | null) => {
  const content = { definition: definition as never, draft };
  return version === null
    ? client.http.createWorkflow({ body: content })
    : client.http.replaceWorkflow({ params: { id }, body: { ...content, version } });
};

const useNewerVersion = (workflow: Workflow | null, base: number | null, onNewer: () => void): void => {
  const newest = workflow?.version ?? 0;
  useEffect(() => {
    if (base !== null && newest > base) onNewer();
  }, [newest, base]);
};

/** Saves versions of a workflow, and finds out when another editor has saved one. */
export const useSave = (id: string, workflow: Workflow | null, model: EditorModel): Saving => {
  const { editor, problems } = model;
  const [base, setBase] = useState(workflow?.version ?? null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [theirs, setTheirs] = useState<Workflow | null>(null);

  const take = (newer: Workflow): void => {
    editor.change({ definition: newer.definition });
    editor.markSaved(newer.definition);
    setBase(newer.version);
    setTheirs(null);
    setProblem(null);
  };
  useNewerVersion(workflow, base, () => {
    if (workflow && !isChanged(editor.state.get())) take(workflow);
  });

  const send = async ({
    asNew = false,
    over,
    draft = problems.size > 0,
  }: Parameters<Saving['save']>[0] = {}) => {
    const { definition, points } = editor.state.get();
    const version = asNew ? null : (over ?? base);
    const saved = await write(id, definition, draft, version);
    editor.markSaved(saved.definition);
    setBase(saved.version);
    setTheirs(null);
    keepPlaces(saved.id, points);
    if (saved.id !== id) navigate(`/workflows/${saved.id}/edit${location.search}`, { replace: !asNew });
    return saved;
  };
  const fail = async (failure: Problem): Promise<null> => {
    setProblem(failure);
    if (isConflict(failure)) setTheirs(await client.http.getWorkflow({ params: { id } }));
    const node = model.nodeOf(failure.message);
    if (node !== '') model.select(node);
    return null;
  };
  const save: Saving['save'] = async (how) => {
    if (isBusy) return null;
    setBusy(true);
    setProblem(null);
    try {
      return await send(how);
    } catch (error) {
      return await fail(toProblem(error));
    } finally {
      setBusy(false);
    }
  };
  const takeTheirs = (): void => {
    if (theirs) take(theirs);
  };
  return { isBusy, problem, theirs, base, save, takeTheirs, closeConflict: () => setTheirs(null) };
};
