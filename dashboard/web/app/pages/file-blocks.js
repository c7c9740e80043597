// Groups the touches of a file into blocks of one session. Pure.
/** @import { FileTouch } from "../../types/answers" */

/** A longer pause of a session begins another block. */
const PAUSE_US = 3_600e6;

/**
 * Touches, oldest first, as blocks: a block ends where another session touches the file, and at a long pause. `gap_us` is the time
 * since the end of the block before; null for the first.
 * @param {FileTouch[]} touches @returns {{ session: string, gap_us: number | null, touches: FileTouch[] }[]}
 */
export function blocks(touches) {
  /** @type {{ session: string, gap_us: number | null, touches: FileTouch[] }[]} */
  const list = [];
  for (const one of touches) {
    const block = list.at(-1);
    const last = block?.touches.at(-1);
    const pause = last ? one.at_us - last.at_us : null;
    if (block && block.session === one.session && (pause ?? 0) <= PAUSE_US) block.touches.push(one);
    else list.push({ session: one.session, gap_us: pause, touches: [one] });
  }
  return list;
}
