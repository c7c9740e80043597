// Templates without a build step: htm's tagged templates over Preact's nodes. Text is always a text node.
import { h } from "../../vendor/preact.js";
import htm from "../../vendor/htm.js";

export const html = htm.bind(h);
export { render, Component } from "../../vendor/preact.js";
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from "../../vendor/hooks.js";
