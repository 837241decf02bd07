// The page of `tfr browse`: a table of any number of rows, of which those in sight are asked for, and a record.
// What the server sends as HTML is escaped there; everything else is set as text.
"use strict"

const $ = id => document.getElementById(id)
const scroller = $("scroller"), space = $("space"), view = $("view"), head = $("head")
const CHUNK = 25, GROUP = 8, TALLEST = 8e6, NUMBER_WIDTH = 92
const WIDTHS = {image: 178, audio: 300, number: 116, text: 232}

const state = {
  info: null, status: {total: 0, complete: false, progress: 0, unread: ""},
  where: "", found: null, // of a search: count, complete, progress
  shown: [], pinned: [], // columns by number, in the order of the table
  top: 0, // pixels of the table above those in sight; more than an element can be high
  row: 0, column: 0, // of the active cell: -1 is the heading, or the number of the row
  record: null, // the row that is shown on the page of a record
}
const chunks = new Map() // rows that were asked for, by chunk and columns
let abort = new AbortController()

async function ask(name, parameters = {}, options = {}) {
  const answer = await fetch(`${name}?${new URLSearchParams(parameters)}`, options)
  const content = await answer.json()
  if (content.error !== undefined && !answer.ok) throw new Error(content.error)
  return content
}

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "html") element.innerHTML = value // from the server, which escapes
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...children)
  return element
}

// What is wrong; by default, what is with all records.
function say(text) {
  $("message").textContent = text || state.info?.problem || ""
  $("message").hidden = !$("message").textContent
}

const count = number => number.toLocaleString("en")
const isSearch = () => state.where !== "" || Boolean(state.info?.filtered)
const rows = () => isSearch() ? state.found?.count ?? 0 : state.status.total
const form = at => state.info.forms[state.info.form_of[at]] // its type, and its kind of cells
const rowHeight = () => arrange().height * (state.info.compare ? 2 : 1)
const width = at => Math.min(WIDTHS[form(at).kind], Math.max(110, innerWidth * .6))
const inSight = () => Math.max(60, scroller.clientHeight - head.offsetHeight)
const most = () => Math.max(0, rows() * rowHeight() - inSight())
const showOnly = part => ["table", "record"].forEach(id => $(id).hidden = id !== part)
const list = () => [...state.pinned, ...arrange().free]

// ---- the table
// Columns that are not pinned, where each begins, and the height of rows: kept, as there may be 10^5 columns.
let arranged = {}
function arrange() {
  const {shown, pinned} = state
  if (arranged.shown === shown && arranged.pinned === pinned && arranged.window === innerWidth) return arranged
  const free = shown.filter(at => !pinned.includes(at)), begins = [0], kinds = new Set(shown.map(at => form(at).kind))
  for (const at of free) begins.push(begins.at(-1) + width(at))
  const pinnedWidth = pinned.reduce((sum, at) => sum + width(at), NUMBER_WIDTH)
  const height = kinds.has("image") ? 116 : kinds.has("audio") ? 84 : 36
  return arranged = {shown, pinned, window: innerWidth, free, begins, height, whole: pinnedWidth + begins.at(-1)}
}

// The same, with the first and last in sight.
function layout() {
  const {free, begins, whole} = arrange(), left = scroller.scrollLeft, right = left + scroller.clientWidth
  const end = at => at < 0 ? free.length : at // none begins there
  const first = Math.max(0, end(begins.findIndex(begin => begin >= left)) - 1)
  const last = Math.ceil(end(begins.findIndex(begin => begin + whole - begins.at(-1) > right)) / GROUP) * GROUP
  return {...arranged, first: Math.floor(first / GROUP) * GROUP, last: Math.min(free.length, last)}
}

function resize() {
  space.style.height = `${Math.min(TALLEST, rows() * rowHeight()) + 2}px`
  space.style.width = `${layout().whole}px`
  scroller.classList.toggle("tall", rowHeight() > 40)
  scroller.setAttribute("aria-rowcount", state.status.complete ? rows() + 1 : -1)
  scroller.setAttribute("aria-colcount", state.shown.length + 1)
  state.top = Math.min(state.top, most())
}

// The table is higher than elements may be: small steps of the scroll bar are pixels, large ones are shares.
let expected = 0, settling = 0
const isTall = () => rows() * rowHeight() > TALLEST
const reach = () => Math.max(1, space.offsetHeight + head.offsetHeight - scroller.clientHeight)
function track() {
  const step = scroller.scrollTop - expected
  if (!isTall()) state.top = Math.min(most(), scroller.scrollTop)
  else if (Math.abs(step) < 2 * scroller.clientHeight) state.top = Math.min(most(), Math.max(0, state.top + step))
  else state.top = Math.min(1, scroller.scrollTop / reach()) * most()
  expected = scroller.scrollTop
}

function scrolled() {
  track()
  clearTimeout(settling)
  settling = setTimeout(() => scroller.scrollTop === expected && settle(), 150) // else an event is on its way
  draw()
}

function settle() {
  scroller.scrollTop = isTall() ? state.top / Math.max(1, most()) * reach() : state.top
  expected = scroller.scrollTop
}

function scrollTo(row, where = "start") {
  const height = rowHeight(), above = row * height, below = above + height - inSight()
  if (where === "start" || above < state.top) state.top = above
  else if (below > state.top) state.top = below
  state.top = Math.max(0, Math.min(most(), state.top))
  settle()
  draw()
}

const key = (chunk, columns) => `${chunk}:${columns.join(",")}`

function draw() {
  if (!state.info || state.record !== null) return
  const places = layout(), height = rowHeight()
  const columns = [...state.pinned, ...places.free.slice(places.first, places.last)]
  const first = Math.floor(state.top / height), end = Math.min(rows(), first + Math.ceil(inSight() / height) + 1)
  drawHead(places)
  const drawn = [], wanted = new Set()
  for (let row = first; row < end; row++) {
    const chunk = Math.floor(row / CHUNK)
    wanted.add(chunk)
    const content = chunks.get(key(chunk, columns))?.rows?.[row % CHUNK]
    drawn.push(drawRow(row, content, columns, places, row * height - state.top, height))
  }
  view.replaceChildren(...drawn)
  view.classList.toggle("empty", rows() === 0)
  if ($("active")) scroller.setAttribute("aria-activedescendant", "active")
  else scroller.removeAttribute("aria-activedescendant")
  load([...wanted], columns)
}

let loading = 0
function load(wanted, columns) {
  const missing = wanted.filter(chunk => !chunks.has(key(chunk, columns)))
  if (!missing.length) return
  clearTimeout(loading)
  loading = setTimeout(() => missing.forEach(chunk => loadChunk(chunk, columns)), 25)
}

async function loadChunk(chunk, columns) {
  const name = key(chunk, columns), first = chunk * CHUNK
  if (chunks.has(name)) return
  const entry = {rows: null}
  chunks.set(name, entry)
  if (chunks.size > 200) chunks.delete(chunks.keys().next().value)
  try {
    const query = {first, count: CHUNK, columns: columns.join(","), where: state.where}
    const answer = await ask("rows", query, {signal: abort.signal})
    entry.rows = answer.rows
    if (answer.rows.length < Math.min(CHUNK, rows() - first)) setTimeout(() => chunks.delete(name), 500)
    say("")
  } catch (error) {
    if (error.name === "AbortError") return
    setTimeout(() => chunks.delete(name) && draw(), 1000)
    return say(error.message)
  }
  requestAnimationFrame(draw)
}

const forget = () => (abort.abort(), abort = new AbortController(), chunks.clear())

let headOf = []
function drawHead(places) {
  const facts = [places.first, places.last, arranged, state.column, state.row < 0]
  if (facts.every((fact, at) => fact === headOf[at])) return
  headOf = facts
  const row = make("div", {role: "row", class: "row", "aria-rowindex": 1})
  row.append(cellOf("columnheader", "row", -1, -1, 1, NUMBER_WIDTH, 0))
  place(row, places, (at, index, left) => {
    const shown = cellOf("columnheader", "", -1, index, index + 2, width(at), left)
    shown.innerHTML = `<b>${state.info.headings[at] ?? state.info.plain[at]}</b> <span class="note">${form(at).type}</span>`
    shown.dataset.column = at
    shown.title = state.info.plain[at] // of which the end may be cut off
    return shown
  })
  head.replaceChildren(row)
  row.style.width = `${places.whole}px`
}

// Put the cells of the pinned columns and of those in sight into a row; `cell` makes them.
function place(row, places, cell) {
  let left = NUMBER_WIDTH
  state.pinned.forEach((at, index) => {
    row.append(cell(at, index, left))
    left += width(at)
  })
  const spacer = make("div", {role: "presentation"})
  spacer.style.flex = `0 0 ${places.begins[places.first]}px`
  row.append(spacer)
  places.free.slice(places.first, places.last).forEach((at, index) => {
    row.append(cell(at, state.pinned.length + places.first + index, null))
  })
}

function cellOf(role, content, row, index, number, cellWidth, left) {
  const isActive = state.row === row && state.column === index
  const cell = make("div", {role, class: "cell", "aria-colindex": number, id: isActive ? "active" : null}, content)
  cell.style.flex = `0 0 ${cellWidth}px`
  if (left !== null) cell.classList.add("pinned"), cell.style.left = `${left}px`
  return cell
}

function drawRow(row, content, columns, places, top, height) {
  const line = make("div", {role: "row", class: "row", "aria-rowindex": row + 2})
  line.dataset.row = row
  Object.assign(line.style, {transform: `translateY(${top}px)`, height: `${height}px`, width: `${places.whole}px`})
  const number = cellOf("rowheader", count(content?.n ?? row), row, -1, 1, NUMBER_WIDTH, 0)
  if (content) number.title = content.at
  line.append(number)
  if (content?.damage) {
    const cell = cellOf("gridcell", "", row, 0, 2, Math.min(scroller.clientWidth - NUMBER_WIDTH, 900), NUMBER_WIDTH)
    cell.classList.add("damage")
    cell.setAttribute("aria-colspan", Math.max(1, state.shown.length))
    cell.innerHTML = content.damage
    line.append(cell)
    return line
  }
  place(line, places, (at, index, left) => {
    const cell = cellOf("gridcell", "", row, index, index + 2, width(at), left)
    cell.classList.add(form(at).kind)
    if (content) cell.innerHTML = content.cells[columns.indexOf(at)]
    else cell.classList.add("waiting")
    return cell
  })
  return line
}

// ---- keys and clicks in the table
function move(rowStep, columnStep) {
  state.row = Math.max(-1, Math.min(rows() - 1, state.row + rowStep))
  state.column = Math.max(-1, Math.min(state.shown.length - 1, state.column + columnStep))
  const places = layout(), index = state.column - state.pinned.length
  if (columnStep && index >= 0) {
    const begin = places.begins[index], end = places.begins[index + 1]
    const room = scroller.clientWidth - (places.whole - places.begins.at(-1))
    if (begin < scroller.scrollLeft) scroller.scrollLeft = begin
    else if (end > scroller.scrollLeft + room) scroller.scrollLeft = end - room
  }
  if (state.row >= 0) scrollTo(state.row, "near")
  else draw()
}

const page = () => Math.max(1, Math.floor(inSight() / rowHeight()) - 1)
const KEYS = {
  ArrowDown: () => move(1, 0), ArrowUp: () => move(-1, 0), ArrowLeft: () => move(0, -1), ArrowRight: () => move(0, 1),
  PageDown: () => move(page(), 0), PageUp: () => move(-page(), 0),
  Home: control => control ? move(-Infinity, 0) : move(0, -Infinity),
  End: control => control ? move(Infinity, 0) : move(0, Infinity),
  Enter: () => state.row < 0 ? state.column >= 0 && openColumn(list()[state.column]) : openRow(state.row),
}
scroller.addEventListener("keydown", event => {
  const act = event.altKey ? null : KEYS[event.key]
  if (!act || event.target !== scroller) return
  event.preventDefault()
  if (event.key === "Home" && event.ctrlKey) state.row = 0
  act(event.ctrlKey || event.metaKey)
})
scroller.addEventListener("click", event => {
  const heading = event.target.closest("[data-column]"), line = event.target.closest("[data-row]")
  if (heading) openColumn(Number(heading.dataset.column))
  else if (line && !event.target.closest("audio, video, a")) openRow(Number(line.dataset.row))
})
scroller.addEventListener("scroll", scrolled, {passive: true})
new ResizeObserver(() => state.info && (keep(), draw())).observe(scroller)

const ANYWHERE = {"/": () => $("where").focus(), g: () => $("goto").focus(), c: () => $("columns").click(),
  "?": () => $("help").click()}
document.addEventListener("keydown", event => {
  if (event.target.closest("input, textarea, dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return
  const inRecord = {ArrowUp: -1, ArrowLeft: -1, k: -1, ArrowDown: 1, ArrowRight: 1, j: 1}
  if (state.record !== null && event.key in inRecord && !event.target.closest("audio, video")) step(inRecord[event.key])
  else if (state.record !== null && event.key === "Escape") close()
  else if (event.key in ANYWHERE) ANYWHERE[event.key]()
  else return
  event.preventDefault()
})

// ---- the record
async function openRow(row) {
  const chunk = [...chunks].find(([name, entry]) => name.startsWith(`${Math.floor(row / CHUNK)}:`) && entry.rows)
  const askRow = () => ask("rows", {first: row, count: 1, where: state.where}).catch(error => say(error.message))
  const at = chunk?.[1].rows[row % CHUNK]?.at ?? (await askRow())?.rows[0]?.at
  if (at === undefined) return
  state.row = row
  history.pushState({row}, "", `#${at}`)
  await showRecord(at, row)
}

let asked = 0 // records so far: an answer that another one has overtaken is not shown
async function showRecord(at, row = null) {
  const number = ++asked
  try {
    const columns = list().slice(0, 500) // pinned ones first
    const answer = await ask("record", {at, columns: columns.join(",")})
    if (number !== asked) return
    state.record = state.row = row ?? answer.n ?? 0
    $("content").innerHTML = answer.html
    $("place").textContent = answer.at
    document.title = `${answer.at} – ${state.info.title}`
    say("")
  } catch (error) {
    return say(error.message)
  }
  const isFirst = $("record").hidden
  showOnly("record")
  $("previous").disabled = state.record <= 0
  $("next").disabled = state.record + 1 >= rows()
  if (isFirst) $("record").focus()
  $("record").scrollTop = 0
}

const step = by => state.row + by >= 0 && state.row + by < rows() && openRow(state.row + by)
const close = () => state.record !== null && (history.pushState({}, "", location.pathname), hideRecord())

function hideRecord() {
  asked++
  state.record = null
  $("content").replaceChildren()
  showOnly("table")
  document.title = state.info.title
  resize()
  scrollTo(Math.max(0, state.row), "near")
  scroller.focus()
}

const acts = {close, previous: () => step(-1), next: () => step(1), copy: () => copy(location.href)}
Object.entries(acts).forEach(([id, act]) => $(id).addEventListener("click", act))
addEventListener("popstate", event => {
  const at = decodeURIComponent(location.hash.slice(1))
  if (at) showRecord(at, event.state?.row ?? null)
  else if (state.record !== null) hideRecord()
})

const copy = text => (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => say("Copied."), () => say(text))

$("jump").addEventListener("submit", async event => {
  event.preventDefault()
  try {
    const found = await ask("find", {text: $("goto").value})
    if (state.record !== null && !isSearch() && found.n !== null) return await openRow(found.n)
    if (isSearch() || found.n === null) {
      history.pushState({}, "", `#${found.at}`)
      return await showRecord(found.at)
    }
    state.row = found.n
    state.status.total = Math.max(state.status.total, found.n + 1)
    resize()
    scrollTo(found.n)
    scroller.focus()
    say("")
  } catch (error) {
    say(error.message)
  }
})

// ---- the filter
let polling = 0, typing = 0
async function search(where) {
  const before = state.where
  state.where = where
  state.found = null
  forget()
  clearTimeout(polling)
  state.row = Math.min(state.row, 0)
  if (isSearch()) return await poll(where, before)
  if (before) ask("search", {where: "", forget: before}).catch(() => null)
  say("")
  refresh()
}

async function poll(where, forgotten = "") {
  try {
    const answer = await ask("search", {where, ...(forgotten && forgotten !== where ? {forget: forgotten} : {})})
    if (where !== state.where) return
    const before = state.found?.count ?? 0
    state.found = answer
    say(answer.error)
    if (answer.count !== before || answer.complete) refresh()
    showCount()
    if (!answer.complete) polling = setTimeout(poll, 200, where)
  } catch (error) {
    if (where !== state.where) return
    say(error.message)
    state.found = {count: 0, complete: true}
    refresh()
  }
}

// Resize the table without losing a step of the scroll bar whose event is on its way.
const keep = () => (state.record === null && scroller.scrollTop !== expected && track(), resize(), settle())
const refresh = () => (keep(), showCount(), draw())

$("where").addEventListener("input", () => (clearTimeout(typing), typing = setTimeout(complete, 120)))
$("search").addEventListener("submit", event => {
  event.preventDefault()
  hideHints()
  if (state.record !== null) close()
  search($("where").value.trim())
})

const OPERATORS = ["==", "!=", "<", "<=", ">", ">=", "in", "between", "startswith", "contains", "is null", "is not null"]
async function complete() {
  const input = $("where"), before = input.value.slice(0, input.selectionStart)
  const [, kept, word] = before.match(/^(.*?(?:^|\s|\())([^\s()]*)$/s)
  const words = kept.trim().split(/\s+|(?=\()/).filter(Boolean), last = words.at(-1) ?? ""
  let options
  if (/^(==|!=|<=?|>=?|contains|startswith)$/.test(last)) {
    const column = state.info.plain.indexOf(words.at(-2).replace(/^[`"]|[`"]$/g, ""))
    options = column < 0 ? [] : await frequent(column)
  } else if (state.info.plain.includes(last)) options = OPERATORS
  else if (last && !/^(and|or|not|\()$/.test(last)) options = ["and", "or"]
  else options = state.info.plain
  const found = options.filter(option => option.toLowerCase().startsWith(word.toLowerCase()) && option !== word)
  showHints(found.slice(0, 8), option => {
    const after = input.value.slice(input.selectionStart)
    input.value = `${kept}${option} ${after.trimStart()}`
    input.selectionStart = input.selectionEnd = kept.length + option.length + 1
  })
}

const values = new Map()
async function frequent(column) {
  const quoted = value => form(column).kind === "number" ? value : `'${value.replaceAll("'", "\\'")}'`
  const found = async () => (await ask("summary", {column}).catch(() => null))?.values.map(quoted) ?? []
  if (!values.has(column)) values.set(column, await found())
  return values.get(column)
}

let hint = -1
function showHints(found, choose) {
  hint = -1
  const take = option => (choose(option), hideHints(), $("where").focus(), complete())
  const items = found.map((option, at) => make("li", {role: "option", id: `hint-${at}`, "aria-selected": "false",
    onmousedown: event => (event.preventDefault(), take(option))}, option))
  $("hints").replaceChildren(...items)
  $("hints").hidden = !items.length
  $("where").setAttribute("aria-expanded", items.length > 0)
  $("where").onkeydown = event => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key]
    if (step && items.length) {
      hint = (hint + step + items.length + (hint < 0 && step < 0 ? 1 : 0)) % items.length
      items.forEach((item, at) => item.setAttribute("aria-selected", at === hint))
      $("where").setAttribute("aria-activedescendant", `hint-${hint}`)
    } else if ((event.key === "Enter" || event.key === "Tab") && hint >= 0) take(found[hint])
    else if (event.key === "Escape") hideHints()
    else return
    event.preventDefault()
  }
}

function hideHints() {
  hint = -1
  $("hints").hidden = true
  $("where").setAttribute("aria-expanded", "false")
  $("where").removeAttribute("aria-activedescendant")
}
$("where").addEventListener("blur", hideHints)
$("where").addEventListener("focus", complete)

// ---- panels
function open(title, ...content) {
  $("panel-title").textContent = title
  $("panel-content").replaceChildren(...content)
  $("panel").open || $("panel").showModal()
}
const button = (text, act) => make("button", {type: "button", onclick: act}, text)

$("columns").addEventListener("click", () => {
  const box = make("input", {type: "search", name: "names", placeholder: "Search columns", "aria-label": "Search columns"})
  const items = make("ul", {class: "columns"}), note = make("p", {class: "note"})
  const fill = () => {
    const word = box.value.toLowerCase()
    const found = state.info.plain.map((name, at) => [name, at]).filter(([name]) => name.toLowerCase().includes(word))
    items.replaceChildren(...found.slice(0, 200).map(([name, at]) => {
      const change = ({target}) =>
        choose(target.checked ? [...state.shown, at].sort((a, b) => a - b) : state.shown.filter(n => n !== at))
      const shows = make("input",
        {type: "checkbox", name: `column-${at}`, checked: state.shown.includes(at), onchange: change})
      const isPinned = () => String(state.pinned.includes(at))
      const pin = make("button", {type: "button", "aria-pressed": isPinned(), "aria-label": `Pin ${name}`,
        onclick: ({target}) => (togglePin(at), target.setAttribute("aria-pressed", isPinned()))}, "Pin")
      return make("li", {}, make("label", {}, shows, make("span", {}, name || "(empty)")), pin)
    }))
    note.textContent = found.length > 200 ? `The first 200 of ${count(found.length)}: search for others.` : ""
  }
  box.addEventListener("input", fill)
  const all = button("Show all", () => (choose(state.info.plain.map((_, at) => at)), fill()))
  const none = button("Hide all", () => (choose([]), fill()))
  fill()
  open("Columns", make("div", {class: "buttons"}, box, all, none), items, note)
  box.focus()
})

function choose(columns) {
  Object.assign(state, {shown: columns, pinned: state.pinned.filter(at => columns.includes(at))})
  forget()
  refresh()
}

function togglePin(at) {
  state.pinned = state.pinned.includes(at) ? state.pinned.filter(n => n !== at) : [...state.pinned, at]
  if (!state.shown.includes(at)) state.shown = [...state.shown, at].sort((a, b) => a - b)
  refresh()
}

async function openColumn(at, all = false) {
  const content = make("div", {}, "…"), bar = make("progress", {max: 1, "aria-label": "Reading the column"})
  const whole = button("Of all rows", () => openColumn(at, true))
  const pin = button(state.pinned.includes(at) ? "Unpin" : "Pin", () => (togglePin(at), $("panel").close()))
  const hide = button("Hide", () => (choose(state.shown.filter(n => n !== at)), $("panel").close()))
  open(state.info.plain[at] || "(empty)", content, bar,
    make("div", {class: "buttons"}, ...(all ? [] : [whole]), pin, hide))
  try {
    while ($("panel").open && content.isConnected) {
      const answer = await ask("summary", {column: at, where: state.where, all: all ? 1 : 0})
      content.innerHTML = answer.html
      bar.value = answer.progress
      bar.hidden = answer.complete
      if (answer.complete) break
    }
  } catch (error) {
    content.textContent = error.message
    bar.hidden = true
  }
}

$("take").addEventListener("click", async () => {
  const columns = state.shown.length < state.info.plain.length ? list() : [] // none: all
  const lines = await ask("lines", {where: state.where, columns: columns.join(",")})
  const part = (title, text) => [make("h3", {}, title), make("pre", {tabindex: 0}, text), button("Copy", () => copy(text))]
  open("The same rows elsewhere", ...part("In a terminal", lines.command), ...part("In Python", lines.python))
})

$("sql").addEventListener("click", () => {
  const query = make("textarea", {name: "query", rows: 4, "aria-label": "SQL", spellcheck: "false"}, "SELECT count(*) FROM data")
  const answer = make("div", {class: "answer", tabindex: 0, role: "region", "aria-label": "Answer"})
  const run = async () => {
    answer.textContent = "…"
    await ask("sql", {query: query.value})
      .then(({html}) => answer.innerHTML = html, error => answer.textContent = error.message)
  }
  query.addEventListener("keydown", event => event.ctrlKey && event.key === "Enter" && run())
  open("SQL with DuckDB; the table is data", query, make("div", {class: "buttons"}, button("Run", run)), answer)
  query.focus()
})

$("help").addEventListener("click", () => {
  const keys = {"↑ ↓ ← →": "move", "Page Up, Page Down": "a screen", "Ctrl+Home, Ctrl+End": "first and last row",
    "Enter": "open the record, or the values of a column at its heading", "/": "filter", "g": "go to a row",
    "c": "columns", "j k, ↑ ↓": "next and previous record", "Esc": "back to the table"}
  const items = Object.entries(keys).map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)))
  open("Keys", make("dl", {class: "facts"}, ...items),
    make("p", {}, "Filters: label == 3, name in ['a', 'b'], n between 1 and 5, tags contains cat, x is null; joined by 'and' and 'or'."))
})

// ---- the state of the files
function showCount() {
  const {found} = state, {total, complete, progress, unread} = state.status
  const known = `${count(total)}${complete ? "" : unread ? " or more" : " so far"}`
  let text = `${known} rows`, done = complete || unread ? 1 : progress
  if (isSearch()) {
    text = `${count(found?.count ?? 0)}${found?.complete ? "" : " so far"} of ${text}`
    if (found?.unread) text += `; in ${count(found.unread)} others, a list is too large to be looked at`
    done = found?.complete === false ? found.progress : 1
  }
  $("count").textContent = text
  $("progress").hidden = done >= 1
  $("progress").value = done
  $("all").hidden = !unread
  $("all").textContent = `Find all rows: reads ${unread}`
}
$("all").addEventListener("click", () => fetch("all", {method: "POST"}))

function follow() {
  const events = new EventSource("events")
  events.onmessage = event => {
    const before = rows()
    state.status = JSON.parse(event.data)
    if (state.status.version !== state.info.version) return location.reload() // other columns, or other files
    if (state.record !== null) $("next").disabled = state.record + 1 >= rows()
    else if (rows() !== before) refresh()
    showCount()
  }
  events.onerror = () => say("The server has ended, or is not reached: start tfr browse again.")
  events.onopen = () => say("")
}

async function begin() {
  state.info = await ask("info").catch(error => say(error.message))
  if (!state.info) return
  state.shown = state.info.plain.map((_, at) => at)
  document.title = $("title").textContent = state.info.title
  $("files").textContent = state.info.files
  $("sql").hidden = !state.info.sql
  state.status.total = state.info.total
  refresh()
  follow()
  if (isSearch()) search("")
  if (location.hash) showRecord(decodeURIComponent(location.hash.slice(1)))
}
begin()
