'use strict';
// As people count: compute-2 before compute-10.
const order = new Intl.Collator('en', {numeric: true});
for (const table of document.querySelectorAll('table.sortable')) {
  table.tHead.addEventListener('click', (event) => {
    const head = event.target.closest('th');
    if (!head || !head.firstElementChild) return;
    const sign = head.ariaSort === 'ascending' ? -1 : 1;
    for (const other of head.parentNode.cells) other.ariaSort = null;
    head.ariaSort = sign === 1 ? 'ascending' : 'descending';
    const rows = Array.from(table.tBodies[0].rows, (row) => [
      row.cells[head.cellIndex].textContent, row,
    ]);
    rows.sort((one, other) => sign * order.compare(one[0], other[0]));
    table.tBodies[0].append(...rows.map((row) => row[1]));
  });
}
