// Pages work without this. It refreshes some, copies commands and digests, and suggests what a search finds.
const load = (address, use) => {
  const request = new XMLHttpRequest()
  request.open('GET', address)
  request.setRequestHeader('Accept', 'text/html')
  request.responseType = 'document'
  request.onload = () => request.status === 200 && request.response && use(request.response)
  request.send()
}
const copyButton = (code) => {
  const text = code.dataset.copy ?? code.textContent
  const button = Object.assign(document.createElement('button'), {
    className: 'copy',
    textContent: 'Copy',
    title: text,
  })
  button.ariaLabel = `Copy ${text}`
  const done = () => (button.textContent = button.ariaLabel = 'Copied')
  button.onclick = () => navigator.clipboard.writeText(text).then(done)
  code.after(button)
}
const addCopying = () =>
  navigator.clipboard && document.querySelectorAll('main :is(pre, [data-copy])').forEach(copyButton)
const focusable = () => [...document.querySelectorAll('main :is(a, button, input, select, [tabindex])')]
const refresh = () => {
  const isUsed = document.querySelector('main :is(input, select):focus') || !getSelection().isCollapsed
  if (document.hidden || isUsed) return
  load(location.href, (fresh) => {
    const before = focusable()
    const at = before.indexOf(document.activeElement)
    document.querySelector('main').replaceChildren(...fresh.querySelector('main').childNodes)
    addCopying()
    const same = focusable().find((one) => at >= 0 && one.outerHTML === before[at].outerHTML)
    const next = same ?? focusable()[at]
    next?.focus({ preventScroll: true })
  })
}
const search = document.querySelector('input[type=search]')
const suggest = () =>
  load(`${search.form.action}?${new URLSearchParams({ q: search.value })}`, (found) => {
    const names = [...found.querySelectorAll('main td:first-child a')].slice(0, 10)
    search.list.replaceChildren(...names.map((link) => new Option(link.textContent)))
  })
let waiting
search.oninput = () => {
  clearTimeout(waiting)
  if (search.value.length > 2) waiting = setTimeout(suggest, 300)
}
document.onkeydown = (event) => {
  const isTyping = event.target.closest('input, select') || event.ctrlKey || event.metaKey || event.altKey
  if (event.key !== '/' || isTyping) return
  event.preventDefault()
  search.focus()
}
addCopying()
if (document.body.dataset.refresh) setInterval(refresh, document.body.dataset.refresh * 1000)
