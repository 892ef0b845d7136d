"use strict";
(() => {
  const list = document.getElementById("wrong");
  const articles = Array.from(list.querySelectorAll("article"));
  const errors = document.getElementById("errors");
  const sort = document.getElementById("sort");
  const find = document.getElementById("find");
  const shown = document.getElementById("shown");
  const texts = new Map(articles.map((article) => [
    article,
    [article.dataset.name, ...Array.from(article.querySelectorAll("code"), (code) => code.textContent)].join("\n").toLowerCase(),
  ]));
  const byName = (one, other) => one.dataset.name.localeCompare(other.dataset.name, undefined, { numeric: true });
  const byNumber = (key) => (one, other) => one.dataset[key] - other.dataset[key] || byName(one, other);

  function isShown(article) {
    const count = Number(article.dataset.errors);
    const wanted = errors.value;
    const matches = wanted === "" || (wanted === "more" ? count > 3 : count === Number(wanted));
    return matches && texts.get(article).includes(find.value.trim().toLowerCase());
  }

  function update() {
    articles.sort(sort.value === "name" ? byName : byNumber(sort.value));
    let count = 0;
    for (const article of articles) {
      article.hidden = !isShown(article);
      count += article.hidden ? 0 : 1;
      list.append(article);
    }
    shown.textContent = `${count} of ${articles.length}`;
  }

  for (const control of [errors, sort, find]) control.addEventListener("input", update);
  document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());
  update();
})();
