import type { ReactNode } from 'react';
import { useAct } from '../data/act.js';
import { ActButton } from './act-button.js';
import { Button, css as ui, Dialog, ProblemBox } from './ui.js';

interface ConfirmDialogProps {
  readonly title: string;
  /** Label of the button that acts. */
  readonly action: string;
  readonly permission: string;
  /** True while there is nothing to confirm. */
  readonly isOff?: boolean;
  /** Closes the dialog if it resolves. */
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: (isDone: boolean) => void;
  readonly children: ReactNode;
}

/** Asks before something is ended or removed. A failed action leaves the dialog open with its reason. */
export const ConfirmDialog = (props: ConfirmDialogProps) => {
  const { title, action, permission, isOff = false, onConfirm, onClose, children } = props;
  const { run, isBusy, problem } = useAct();
  const confirm = (): void => run(() => onConfirm().then(() => onClose(true)));
  return (
    <Dialog title={title} onClose={() => onClose(false)}>
      {children}
      {problem && <ProblemBox problem={problem} />}
      <div className={ui.dialogFoot}>
        <Button onClick={() => onClose(false)}>Keep it</Button>
        <ActButton permission={permission} look="danger" isOff={isBusy || isOff} onClick={confirm}>
          {action}
        </ActButton>
      </div>
    </Dialog>
  );
};
