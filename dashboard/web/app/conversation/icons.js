// One picture per kind of row: paths in a box of 24.
/** @import { Form } from "../../types/conversation" */

const NAMESPACE = "http://www.w3.org/2000/svg";

/** @type {Record<string, string>} */
const KINDS = {
  shell: "M3 5h18v14H3zM7 10l2.5 2.5L7 15M12.5 15h4",
  tools: "M6 3h8l4 4v14H6zM14 3v4h4M9.5 12h5M9.5 16h5",
  mcp: "M9 3v5M15 3v5M7 8h10v3a5 5 0 01-10 0zM12 16v5",
};
/** @type {Partial<Record<Form, string>>} */
const FORMS = {
  prompt: "M12 12a4 4 0 100-8 4 4 0 000 8zM4.5 20.5c0-4 3.5-5.5 7.5-5.5s7.5 1.5 7.5 5.5",
  thought: "M9.5 18h5M10.5 21h3M12 3a6 6 0 00-3.6 10.8c.8.6 1.1 1.4 1.1 2.2h5c0-.8.3-1.6 1.1-2.2A6 6 0 0012 3z",
  answer: "M4 5h16v11H11l-4 4v-4H4z",
  edit: "M4 20l1-4.5L16 4.5l3.5 3.5L8.5 19zM13.5 7l3.5 3.5",
  agent: "M5 9h14v10H5zM12 9V5M9.5 13.5v1M14.5 13.5v1M2.5 13v3M21.5 13v3",
  idle: "M6 3h12M6 21h12M7 3c0 6 10 6 10 9S7 15 7 21M17 3c0 6-10 6-10 9s10 3 10 9",
  note: "M5 12h14",
};

/** @param {Form} form @param {string} kind */
export const iconOf = (form, kind) => FORMS[form] ?? KINDS[kind] ?? KINDS.tools;

/** A picture whose path can be changed. */
export function makeIcon() {
  const svg = document.createElementNS(NAMESPACE, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "cv-icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(NAMESPACE, "path");
  svg.append(path);
  return { svg, path };
}
