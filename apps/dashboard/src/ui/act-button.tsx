import { useId } from 'react';
import { useRefusal } from '../data/act.js';
import { Button } from './ui.js';
import type { IconName } from './icon.js';

interface ActButtonProps {
  readonly permission: string;
  readonly onClick?: () => void;
  readonly type?: 'button' | 'submit';
  readonly look?: 'primary' | 'danger' | 'quiet';
  readonly icon?: IconName;
  readonly isOff?: boolean;
  /** Accessible name, which begins with the text. Default: the text. */
  readonly label?: string;
  readonly children: string;
}

/**
 * A button that changes something. It is off in the past and without the permission. Then it can
 * still get the focus, so that it can say why.
 */
export const ActButton = (props: ActButtonProps) => {
  const { permission, isOff = false, children, look, icon, type = 'button', label, onClick } = props;
  const id = useId();
  const refusal = useRefusal(permission);
  const given = { look, type, 'aria-label': label, ...(icon ? { icon } : {}) };
  if (refusal === null)
    return (
      <Button {...given} disabled={isOff} onClick={onClick}>
        {children}
      </Button>
    );
  return (
    <>
      <Button
        {...given}
        aria-disabled="true"
        aria-describedby={id}
        data-tip={refusal}
        onClick={(event) => event.preventDefault()}
      >
        {children}
      </Button>
      <span id={id} hidden>
        {refusal}
      </span>
    </>
  );
};
