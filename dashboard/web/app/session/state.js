// The state of a session's page at the start.
/** @import { SessionState } from "../../types/session" */

/** @returns {SessionState} */
export const initialState = () => ({
  session: null, turns: [], error: null, trace: null, rev: 0, chosen: null, found: null, focus: null, critical: null, following: false,
});
