// Elements. Every text goes through a text node, so nothing in it can become markup.

/**
 * An element. Attributes whose value is a function are listeners (`onclick`); true and false
 * set and leave out an attribute.
 * @param {string} tag
 * @param {Record<string, unknown>} attributes
 * @param {...(Node | string | number | null | undefined | Array)} children
 * @returns {any}
 */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for a picture. */
function makeSvg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, visible(String(value)));
    }
  }
  element.append(...children.flat(Infinity).filter(isPresent).map(asNode));
  return element;
}

function isPresent(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(visible(String(child)));
}

/** A button that does something on this page. */
function button(label, onclick, attributes = {}) {
  return make("button", { type: "button", onclick, ...attributes }, label);
}

/**
 * A labelled choice.
 * @param {string} id
 * @param {string} label
 * @param {[value: string, text: string][]} choices
 * @param {string} current
 * @param {(value: string) => void} choose
 */
function chooser(id, label, choices, current, choose) {
  const select = make(
    "select",
    { id, onchange: () => choose(select.value) },
    choices.map(([value, text]) => make("option", { value }, snippet(text, 60))),
  );
  // The attribute shows foreign characters; the value must be what they are.
  choices.forEach(([value], index) => (select.options[index].value = value));
  select.value = current;
  return labelled(label, select);
}

/** A control under its name. */
function labelled(label, control, look = "") {
  return make("div", { class: `field ${look}` }, make("label", { for: control.id }, label), control);
}

/** Say something to people who do not see the page; it is also shown for a moment. */
function announce(text) {
  document.getElementById("said").replaceChildren(asNode(text));
}
